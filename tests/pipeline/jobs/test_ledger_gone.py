"""Messages of a queue that is gone without a last word: they do not stand in the ledger for ever, and nobody is accused early."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.job import Surroundings
from penstock.pipeline.jobs.ledger import judged, new_messages, open_messages, still_there
from penstock.pipeline.jobs.ledger_gone import absence, gone_findings
from penstock.pipeline.local_rows import local_rows
from tests.pipeline.rows import NOON, Partition, lifecycle_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

HOUR = timedelta(hours=1)
OTHER = {"name": "other", "queue_id": 8, "retention_ms": 10**12}
ORDERS = {"name": "orders", "queue_id": 7, "retention_ms": 10**12}


def around(now: datetime, *queues: dict[str, Any], asked: bool = True) -> Surroundings:
    """The server has just these queues, and names only the others of them: the list of one account."""
    there = {int(queue["queue_id"]) for queue in queues}

    def missing_of(named: Iterable[tuple[str, int]]) -> frozenset[int]:
        return frozenset(queue_id for _, queue_id in named if queue_id not in there)

    listed = tuple(queue for queue in queues if queue is not ORDERS)
    now_us = int(now.timestamp() * 1e6)
    return Surroundings(now_us, listed, missing_of=missing_of if asked else None)


class Told(NamedTuple):
    """What a roll-up comes to."""

    state: DataFrame
    open: list[tuple[int, int]]
    found: list[Row]


def roll(
    spark: SparkSession, rows: list[dict[str, Any]], surroundings: Surroundings, before: Told | None = None
) -> Told:
    """One roll-up after another, as the job does it."""
    new = lifecycle_frame(spark, rows)
    state = local_rows(spark, [], tables.STATE.file_schema()) if before is None else before.state
    known = judged(new_messages(new, state), new, new, surroundings, absence(new, state, surroundings))
    kept = known.where(still_there()).select(*(one.name for one in tables.STATE.columns)).collect()
    left = sorted((row["partition_id"], row["sequence"]) for row in open_messages(known).collect())
    return Told(
        local_rows(spark, [tuple(row) for row in kept], tables.STATE.file_schema()),
        left,
        gone_findings(known).collect(),
    )


def later(hours: float) -> list[dict[str, Any]]:
    """A row of another queue, by which the log has gone on so far."""
    other = Partition("other", partition_id=80, queue_id=8)
    other.time = NOON + hours * HOUR
    other.number = round(100 * hours)
    other.sent(round(100 * hours))
    return other.rows


def missed(spark: SparkSession, partition: Partition) -> Told:
    """A second roll-up, an hour after noon, in which the server says that it has no such queue."""
    first = roll(spark, partition.rows, around(NOON + HOUR, OTHER))
    return roll(spark, later(0.5), around(NOON + HOUR, OTHER), first)


def of_orders(told: Told) -> list[int]:
    return [sequence for partition_id, sequence in told.open if partition_id == 70]


def test_a_queue_that_is_gone_for_an_hour_of_rows_is_closed_with_one_finding(spark: SparkSession) -> None:
    partition = Partition()
    partition.sent(1, 5)
    partition.worked_on(1, 2)
    first = missed(spark, partition)
    assert of_orders(first) == [3, 4, 5]
    # Rows of half an hour later say nothing yet: those about its end may be behind them.
    second = roll(spark, later(1.5), around(NOON + 3 * HOUR, OTHER), first)
    assert of_orders(second) == [3, 4, 5]
    assert not first.found
    assert not second.found
    third = roll(spark, later(2.5), around(NOON + 3 * HOUR, OTHER), second)
    assert of_orders(third) == []
    assert len(third.open) == 3  # those of the other queue
    (finding,) = third.found
    assert (finding["kind"], finding["queue"], finding["partition_id"]) == ("queue-gone", "orders", 70)
    assert finding["sequence"] is None
    assert "how 3 messages ended" in finding["explanation"]
    assert "3 to 5" in finding["explanation"]
    assert not roll(spark, later(4), around(NOON + 5 * HOUR, OTHER), third).found


def test_a_queue_that_is_there_again_or_cannot_be_asked_for_is_not_missed(spark: SparkSession) -> None:
    partition = Partition()
    partition.sent(1, 2)
    first = missed(spark, partition)
    silent = roll(spark, later(3), around(NOON + 4 * HOUR, asked=False), first)
    found = roll(spark, later(4), around(NOON + 5 * HOUR, ORDERS, OTHER), silent)
    again = roll(spark, later(6), around(NOON + 7 * HOUR, OTHER), found)  # it counts from now on
    for told in (first, silent, found, again):
        assert of_orders(told) == [1, 2]
        assert not told.found


def test_rows_that_come_after_all_end_it_as_ever(spark: SparkSession) -> None:
    partition = Partition()
    partition.sent(1, 2)
    first = missed(spark, partition)
    before = len(partition.rows)
    partition.counts(Change.QUEUE_DELETED, (1, 2))
    told = roll(spark, [*partition.rows[before:], *later(3)], around(NOON + 4 * HOUR, OTHER), first)
    assert of_orders(told) == []
    assert not told.found
