"""Messages of a queue that is gone without a last word: they do not stand in the ledger for ever, and nobody is accused early."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.job import ServerFacts
from penstock.pipeline.jobs.ledger import JOB, judged, new_messages, still_there
from penstock.pipeline.jobs.ledger_gone import absence, gone_findings
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.warehouse.table import WarehouseTable
from tests.pipeline.rows import NOON, Partition, lifecycle_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

HOUR = timedelta(hours=1)
OTHER, BACK = (
    {"name": name, "queue_id": number, "retention_ms": 10**12} for name, number in (("other", 8), ("back", 9))
)


def around(hours: float, *queues: dict[str, Any], asked: bool = True) -> ServerFacts:
    """So long after noon. The server has just these queues, and names only one of them: the list of one account."""
    there = {int(queue["queue_id"]) for queue in queues}

    def missing_of(named: Iterable[tuple[str, int]]) -> frozenset[int]:
        return frozenset(queue_id for _, queue_id in named if queue_id not in there)

    now_us = int((NOON + hours * HOUR).timestamp() * 1e6)
    return ServerFacts(now_us, queues[:1], missing_of=missing_of if asked else None)


class Told(NamedTuple):
    """What a roll-up comes to."""

    rows: list[dict[str, Any]]
    state: DataFrame
    open: list[tuple[int, int]]
    found: list[Row]


class Tables:
    """What a roll-up reads, without a warehouse."""

    def __init__(self, spark: SparkSession, rows: list[dict[str, Any]], before: Told | None) -> None:
        self._spark = spark
        self._new = rows
        self._before = before

    def all_rows(self, table: WarehouseTable) -> DataFrame:
        if table is tables.ROWS:
            return lifecycle_frame(self._spark, [*(self._before.rows if self._before else []), *self._new])
        return self._before.state if table is tables.STATE and self._before else self._empty(table)

    def new_rows(self, table: WarehouseTable) -> DataFrame:
        return lifecycle_frame(self._spark, self._new)

    def old_rows(self, table: WarehouseTable) -> DataFrame:
        return self._empty(table)

    def new_days(self, table: WarehouseTable) -> list[date]:
        return []

    def _empty(self, table: WarehouseTable) -> DataFrame:
        return local_rows(self._spark, [], table.read_schema())


def roll(
    spark: SparkSession, rows: list[dict[str, Any]], server_facts: ServerFacts, before: Told | None = None
) -> Told:
    """As much of a roll-up as it takes."""
    reader = Tables(spark, rows, before)
    new, state = reader.new_rows(tables.ROWS), reader.all_rows(tables.STATE)
    known = judged(new_messages(new, state), new, new, server_facts, absence(new, state, server_facts))
    known = known.persist()
    told = _told(spark, known.where(still_there()), gone_findings(known), rows, before)
    known.unpersist()
    return told


def whole_roll(
    spark: SparkSession, rows: list[dict[str, Any]], server_facts: ServerFacts, before: Told
) -> Told:
    """All of it, as the job does it."""
    rolled = JOB.roll(Tables(spark, rows, before), server_facts)
    found, state = rolled.added[tables.FINDINGS.name], rolled.whole[tables.STATE.name]
    told = _told(spark, state, found, rows, before)
    for frame in rolled.kept:
        frame.unpersist()
    return told


def _told(
    spark: SparkSession, state: DataFrame, found: DataFrame, rows: list[dict[str, Any]], before: Told | None
) -> Told:
    kept = state.select(*(one.name for one in tables.STATE.columns)).collect()
    return Told(
        [*(before.rows if before else []), *rows],
        local_rows(spark, [tuple(row) for row in kept], tables.STATE.file_schema()),
        sorted((row["partition_id"], row["sequence"]) for row in kept),
        found.collect(),
    )


def later(hours: float) -> list[dict[str, Any]]:
    """A row of another queue, by which the log has gone on so far."""
    other = Partition("other", partition_id=80, queue_id=8)
    other.time = NOON + hours * HOUR
    other.number = round(100 * hours)
    other.sent(round(100 * hours))
    return other.rows


@pytest.mark.beside
def test_messages_of_a_queue_that_is_gone_leave_with_one_finding_and_no_others_do(
    spark: SparkSession,
) -> None:
    orders, back = Partition(), Partition("back", partition_id=90, queue_id=9)
    late = Partition("late", partition_id=100, queue_id=10)
    orders.sent(1, 5)
    orders.worked_on(1, 2)
    back.sent(1, 2)
    late.sent(1, 2)
    kept = [(90, 1), (90, 2)]
    waiting = [(70, 3), (70, 4), (70, 5), *kept]

    def still(told: Told) -> list[tuple[int, int]]:
        return [one for one in told.open if one[0] != 80]

    told = roll(spark, [*orders.rows, *back.rows, *late.rows], around(1, OTHER))
    told = roll(spark, later(0.5), around(1, OTHER), told)  # all three are missed, an hour after noon
    assert still(told) == [*waiting, (100, 1), (100, 2)]
    assert not told.found
    # One is there again, of another the last rows have come after all, and of the third they may be behind these.
    late.counts(Change.QUEUE_DELETED, (1, 2))
    told = roll(spark, [late.rows[-1], *later(1.9)], around(3, OTHER, BACK), told)
    assert still(told) == waiting
    assert not told.found
    told = roll(spark, later(2.5), around(4, asked=False), told)  # who cannot ask concludes nothing
    assert still(told) == waiting
    assert not told.found
    told = whole_roll(
        spark, later(2.6), around(5, OTHER), told
    )  # the one that was there again counts from now on
    assert still(told) == kept
    (finding,) = told.found
    assert (finding["kind"], finding["queue"], finding["partition_id"]) == ("queue-gone", "orders", 70)
    assert finding["sequence"] is None
    assert "how 3 messages ended that were there, 3 to 5" in finding["explanation"]
