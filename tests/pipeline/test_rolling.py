"""Roll-ups that are cut short: whatever step was the last, the next run repeats them with the same batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

from penstock.columnar.usage import USAGE
from penstock.pipeline.job_state import JobState, Rolling
from penstock.pipeline.jobs.job import Job, Reader, Rolled, ServerFacts, Tables, gap_table
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import SeenNumbers
from penstock.pipeline.rolling import Roller
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.table import WarehouseTable, column
from penstock.pipeline.warehouse.warehouse import Warehouse
from tests.pipeline.duck import answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TODAY = date(2026, 11, 16)
VALUE = column("value", "int64", "A value.")
PARTS = WarehouseTable("parts", "Test.", "batches", (VALUE,), by_day=True)
ADDED = WarehouseTable("added", "Test.", "batches", (VALUE,))
DAILY = WarehouseTable("daily", "Test.", "days", (VALUE,), by_day=True)
STATE = WarehouseTable("state", "Test.", "whole", (VALUE,))
VIEW = WarehouseTable("view", "Test.", "whole", (VALUE,))
GAPS = gap_table("test_gaps", "front_end", "Test.")
STEPS = [
    ("replace_whole", GAPS.name),  # only the first roll-up of a run writes them, unless they have changed
    ("add_batch", ADDED.name),
    ("replace_days", DAILY.name),
    ("replace_whole", STATE.name),
]


_ONE_CUT = Lock()
"""Tests that run beside each other would leave the cut of one in place of the other's."""


def roll(reader: Reader, server_facts: ServerFacts) -> Rolled:
    """New values are added as they are, and to what was known before: the second would tell if they were new twice."""
    new = reader.new_rows(PARTS).select("value")
    total = reader.all_rows(STATE).select("value").unionByName(new).agg(sf.sum("value").alias("value"))
    return Rolled(
        added={ADDED.name: new},
        days={DAILY.name: (reader.new_days(PARTS), reader.all_rows(PARTS).select("value", "day"))},
        whole={STATE.name: total},
    )


def renew(reader: Reader, server_facts: ServerFacts) -> Tables:
    """As many as there are on all days, and what time it is."""
    total = reader.all_rows(DAILY).agg(sf.sum("value").alias("value"))
    return {VIEW.name: total.select((sf.col("value") + server_facts.now_us).alias("value"))}


JOB = Job(
    "test",
    "Test.",
    "test",
    USAGE,
    "front_end",
    (DAILY, GAPS, PARTS, ADDED, STATE, VIEW),
    lambda rows: {},
    roll,
    state=STATE.name,
    rolled_by_addition=frozenset({ADDED.name}),
    renew=renew,
)


def values(root: Path, table: str) -> list[int]:
    query = (
        f"select value from read_parquet('{root}/{table}/**/*.parquet', hive_partitioning=true) order by 1"
    )
    return [row[0] for row in answer(query)]


@contextmanager
def cut_short_after(place: Path, step: str, table: str, target: int | None = None) -> Iterator[None]:
    """A crash right after a step on a table of the warehouse there; `target`: in the roll-up up to that batch only."""
    honest: Callable[..., Any]

    def cut_short(self: Warehouse, about: WarehouseTable, *values: Any, **more: Any) -> Any:
        done = honest(self, about, *values, **more)
        if (about.name, self.files.local) != (table, str(place)):
            return done
        if target is None or JobState(self.files, JOB.name, self.generation).rolling().target == target:
            raise InterruptedError
        return done

    with _ONE_CUT, pytest.MonkeyPatch.context() as patch:
        honest = getattr(Warehouse, step)
        patch.setattr(Warehouse, step, cut_short)
        yield


@pytest.mark.beside
def test_a_roll_up_that_is_cut_short_is_repeated_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Each run finishes what the one before it left, and is cut short at another step itself."""
    warehouse = Warehouse(spark, Files(spark, str(tmp_path)), "g1")
    memory = JobState(warehouse.files, JOB.name, warehouse.generation)

    def run(batch: int) -> None:
        rows = local_rows(spark, [(10**batch, TODAY)], "value long, day date")
        warehouse.add_batch(PARTS, batch, rows, parts=1, few=True)
        memory.finish_batch(batch, SeenNumbers())
        roller = Roller(warehouse, JOB, memory)
        while roller.behind():
            roller.roll(ServerFacts())

    for batch, (step, table) in enumerate(STEPS):
        with cut_short_after(tmp_path, step, table, target=batch), pytest.raises(InterruptedError):
            run(batch)
    run(len(STEPS))
    expected = [10**batch for batch in range(len(STEPS) + 1)]
    assert values(tmp_path, ADDED.name) == values(tmp_path, DAILY.name) == expected
    assert values(tmp_path, STATE.name) == [sum(expected)]


@pytest.mark.beside
def test_a_table_that_time_changes_is_made_anew_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, Files(spark, str(tmp_path)), "g1")
    memory = JobState(warehouse.files, JOB.name, warehouse.generation)
    roller = Roller(warehouse, JOB, memory)

    def told(now_us: int) -> ServerFacts:
        return ServerFacts(now_us, missing_of=lambda queues: frozenset())

    assert not roller.renew(told(1)), "nothing was ever rolled up"
    rows = local_rows(spark, [(10, TODAY)], "value long, day date")
    warehouse.add_batch(PARTS, 0, rows, parts=1, few=True)
    memory.finish_batch(0, SeenNumbers())
    roller.roll(ServerFacts())
    assert roller.renew(told(1))
    assert values(tmp_path, VIEW.name) == [11]
    with cut_short_after(tmp_path, "replace_whole", VIEW.name), pytest.raises(InterruptedError):
        roller.renew(told(2))
    assert values(tmp_path, VIEW.name) == [12]
    assert not roller.renew(ServerFacts(3)), "the server did not answer: what it said before stays"
    memory.note_rolling(Rolling(0, 1))
    assert not roller.renew(told(4)), "a roll-up that was cut short goes first"
    assert values(tmp_path, VIEW.name) == [12]
    assert (
        values(tmp_path, ADDED.name) == values(tmp_path, DAILY.name) == values(tmp_path, STATE.name) == [10]
    )
