"""Tables that are gone are found out before anything is added to what is left, and those that never were are not missed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.pipeline.batches import Batches
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.job_state import JobState
from penstock.pipeline.jobs.job import Job, ServerFacts
from penstock.pipeline.lost_tables import check_nothing_is_lost
from penstock.pipeline.numbers import SeenNumbers
from penstock.pipeline.rolling import Roller
from penstock.pipeline.warehouse.expiry import expire
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import begin_generation
from penstock.pipeline.warehouse.warehouse import Warehouse
from tests.pipeline.broker import Broker
from tests.pipeline.test_rolling import DAILY, JOB, PARTS, STATE, VIEW, cut_short_after
from tests.pipeline.test_runner import Bench, read
from tests.pipeline.warehouse.bucket import Bucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = date(2026, 11, 16)


class Place:
    """A warehouse with its checkpoint, and the test's job in it."""

    def __init__(self, spark: SparkSession, root: Path, store: Callable[[SparkSession, Path], Files]) -> None:
        self.root = root / "warehouse"
        self.files, self.checkpoint = store(spark, self.root), Files(spark, str(root / "checkpoint"))
        generation = begin_generation(self.files, self.checkpoint, JOB.name, JOB.tables)
        self.warehouse = Warehouse(spark, self.files, generation)
        self.memory = JobState(self.files, JOB.name, generation)
        self.roller = Roller(self.warehouse, JOB, self.memory)

    def add_batch(self, batch: int) -> None:
        """As a run does it."""
        rows = self.warehouse.spark.sql(f"select {batch} as value, date'{DAY}' as day")
        self.warehouse.add_batch(PARTS, batch, rows, parts=1)
        self.memory.note_table(PARTS.name)
        self.memory.finish_batch(batch, SeenNumbers({"front-1": [(0, batch)]}))
        self.checkpoint.write_text(f"commits/{batch}", "v1")

    def let_all_days_go(self) -> None:
        for table in (PARTS, DAILY):
            assert expire(self.warehouse, table, 0, DAY + timedelta(days=400)) == 1

    def check(self) -> None:
        check_nothing_is_lost(self.files, self.checkpoint, JOB)

    def lose(self, name: str) -> None:
        shutil.rmtree(self.root / name)


def on_disk(spark: SparkSession, root: Path) -> Files:
    return Files(spark, str(root))


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path, on_disk)


def test_a_run_refuses_to_go_on_without_a_table_and_a_rebuild_makes_it_anew(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(spark, broker, tmp_path)
    bench.send_usage(range(1, 101))
    bench.run("usage")
    aside = tmp_path.parent / f"{tmp_path.name}-aside"
    (tmp_path / "usage_parts").rename(aside)
    bench.send_usage(range(101, 111))
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(PipelineError, match=r"the table usage_parts of job usage is gone .*--rebuild"):
        bench.run("usage")
    assert sorted(tmp_path.rglob("*.parquet")) == before
    aside.rename(tmp_path / "usage_parts")
    assert bench.run("usage").rows == 10
    assert read(tmp_path, "usage_days", "sum(requests)") == [(110,)]
    shutil.rmtree(tmp_path / "usage_parts")
    assert bench.run("usage", rebuild=True).rows == 110
    assert read(tmp_path, "usage_days", "sum(requests)") == [(110,)]


@pytest.mark.parametrize("store", [on_disk, Bucket])
def test_every_table_that_was_written_is_missed(
    spark: SparkSession, tmp_path: Path, store: Callable[[SparkSession, Path], Files]
) -> None:
    place = Place(spark, tmp_path, store)
    place.check()
    place.add_batch(0)
    place.check()
    place.roller.roll(ServerFacts())
    place.check()
    for name in ("parts", "added", "state", "test_gaps"):
        place.lose(name)
        with pytest.raises(PipelineError, match=rf"\b{name}\b.* --rebuild"):
            place.check()
    place.lose("daily")
    with pytest.raises(PipelineError, match=r"the tables .*parts, added, state of job test are gone"):
        place.check()
    begin_generation(place.files, place.checkpoint, JOB.name, JOB.tables, rebuild=True)
    place.check()


def test_days_that_were_all_too_old_are_not_missed_and_their_table_is(place: Place) -> None:
    place.add_batch(0)
    place.roller.roll(ServerFacts())
    place.let_all_days_go()
    assert not list((place.root / DAILY.name).rglob("*.parquet"))
    place.check()
    place.lose(DAILY.name)
    with pytest.raises(PipelineError, match="the table daily"):
        place.check()


def test_an_object_store_has_no_directory_of_days_that_were_all_too_old(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(spark, tmp_path, Bucket)
    place.add_batch(0)
    place.roller.roll(ServerFacts())
    place.let_all_days_go()
    assert not place.files.exists(DAILY.name)
    place.check()


def test_warehouses_of_earlier_versions_are_known_by_the_rows_that_were_seen(place: Place) -> None:
    place.memory.finish_batch(0, SeenNumbers())  # a batch without rows is added nowhere
    place.check()
    place.add_batch(1)
    place.roller.roll(ServerFacts())
    place.lose(f"_state/{JOB.name}/{place.warehouse.generation}/tables")
    place.check()
    place.lose(STATE.name)
    place.check()
    place.lose(PARTS.name)
    with pytest.raises(PipelineError, match="the table parts"):
        place.check()
    place.memory = JobState(place.files, JOB.name, place.warehouse.generation)
    place.memory.note_table("test_gaps")  # a roll-up that is the first thing that the new version does
    with pytest.raises(PipelineError, match="the table parts"):
        place.check()


def test_a_table_that_was_being_replaced_is_brought_back_by_the_run_itself(place: Place) -> None:
    place.add_batch(0)
    place.roller.roll(ServerFacts())
    target = f"{STATE.name}/gen={place.warehouse.generation}"
    place.files.rename(target, "_staging/state/whole-1")
    note = {"staged": "_staging/state/whole-1", "target": target}
    place.files.write_text("_swaps/one.json", json.dumps(note))
    place.check()


def test_a_rebuild_that_was_cut_short_is_no_loss(place: Place) -> None:
    place.add_batch(0)
    place.lose(PARTS.name)
    note = {"generation": place.warehouse.generation, "removing": place.checkpoint.root}
    place.files.write_text(f"_jobs/{JOB.name}.json", json.dumps(note))
    place.check()


def test_what_a_job_remembers_is_missed_too(place: Place) -> None:
    place.add_batch(0)
    place.lose("_state")
    with pytest.raises(PipelineError, match=r"_state/test/.* count rows twice.* --rebuild"):
        place.check()


def test_a_roll_up_that_was_cut_short_after_its_last_table_leaves_none_unnoted(place: Place) -> None:
    """It is not done again, so that what it wrote has to be known from what is there."""
    place.add_batch(0)
    with cut_short_after(place.root, "replace_whole", STATE.name), pytest.raises(InterruptedError):
        place.roller.roll(ServerFacts())
    place.roller.roll(ServerFacts())
    assert place.memory.written_tables() == {table.name for table in JOB.tables} - {VIEW.name}
    place.roller.renew(ServerFacts(missing_of=lambda queues: frozenset()))
    assert place.memory.written_tables() == {table.name for table in JOB.tables}


def test_a_table_counts_as_written_before_its_batch_counts_as_done(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were it the other way round, a kill in between would leave rows that nobody misses."""
    noted: list[set[str]] = []
    monkeypatch.setattr(
        JobState, "finish_batch", lambda self, batch, seen: noted.append(self.written_tables())
    )
    job = Job(
        JOB.name, JOB.sentence, JOB.queue, JOB.rows, JOB.writer, JOB.tables, lambda rows: {PARTS.name: rows}, JOB.roll,
        rolled_by_addition=JOB.rolled_by_addition,
    )  # fmt: skip
    batches = Batches(place.warehouse, job, place.memory, lambda done: None)
    rows = "select 'front-1' as front_end, {0}L as number, {0}L as value, timestamp'2026-11-16' as time, date'2026-11-16' as day"
    batches(place.warehouse.spark.sql(f"{rows.format(1)} where false"), 0)
    batches(place.warehouse.spark.sql(rows.format(1)), 1)
    assert noted == [set(), {PARTS.name}]
