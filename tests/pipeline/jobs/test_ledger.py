"""The job `ledger`: a lost message, a second end, a reorder and a gap are each found, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.columnar.lifecycle import Change
from penstock.frontend.messages.message_id import message_id
from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.job import ServerFacts
from penstock.pipeline.jobs.ledger import check_everything, judged, new_messages, open_messages
from penstock.pipeline.jobs.ledger_hours import begun_counts, by_hour, ended_counts
from penstock.pipeline.local_rows import local_rows
from tests.pipeline.rows import NOON, Partition, lifecycle_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

AT_NOON = ServerFacts(now_us=int(NOON.timestamp() * 1e6))


def found_in(spark: SparkSession, partition: Partition, around: ServerFacts = AT_NOON) -> list[Row]:
    found = check_everything(lifecycle_frame(spark, partition.rows), around)
    return sorted(found.collect(), key=lambda row: (row["kind"], row["sequence"] or 0))


def all_known(spark: SparkSession, partition: Partition, around: ServerFacts = AT_NOON) -> DataFrame:
    """What a first roll-up knows, if it sees all rows."""
    rows = lifecycle_frame(spark, partition.rows)
    return judged(new_messages(rows, local_rows(spark, [], tables.STATE.file_schema())), rows, rows, around)


def kinds(rows: list[Row]) -> list[tuple[str, int | None]]:
    return [(row["kind"], row["sequence"]) for row in rows]


def planted(kind: str, partition_id: int) -> tuple[Partition, list[tuple[str, int | None]]]:
    """A partition where all is well but for one thing, and what is to be found."""
    partition = Partition(partition_id=partition_id, ordering="fifo")
    happens = partition.happens
    partition.sent(1, 10)
    if kind == "reordered":
        partition.worked_on(1, 3)
        partition.worked_on(5)
        partition.worked_on(4)
        partition.worked_on(6, 5)
        return partition, [("reordered", 5)]
    partition.worked_on(1, 10)
    if kind == "duplicate-end":
        partition.deleted(7)
        return partition, [("duplicate-end", 7)]
    if kind == "delivered-after-end":
        partition.leased(7)
        return partition, [("delivered-after-end", 7)]
    partition.sent(11, 3)
    if kind == "lost":
        partition.counts(Change.QUEUE_DELETED, (11, 1), (13, 1))
        return partition, [("lost", 12)]
    if kind == "unsent":
        partition.leased(20)
        return partition, [("unsent", 20)]
    if kind == "never-arrived":
        happens(Change.MOVE_STARTED, 11, 2, reason="max-receives", other_queue="dead")
        happens(Change.MOVE_FINISHED, 11, 2, reason="max-receives", other_queue="dead")
        other = Partition("dead", partition_id=partition_id + 1000)
        came: dict[str, Any] = {"other_queue": "orders", "other_partition_id": partition_id}
        other.happens(Change.ARRIVED, 1, **came, other_first=11)
        other.time = partition.time
        other.deleted(1)
        partition.rows += other.rows
        return partition, [("never-arrived", 12)]
    return partition, []


@pytest.mark.beside
def test_what_was_planted_is_found_and_nothing_else(spark: SparkSession) -> None:
    kinds_planted = [
        "reordered",
        "duplicate-end",
        "delivered-after-end",
        "lost",
        "unsent",
        "never-arrived",
        "-",
    ]
    everything = Partition()
    expected = {}
    for partition_id, kind in enumerate(kinds_planted, 70):
        partition, expected[partition_id] = planted(kind, partition_id)
        everything.rows += partition.rows
    found = found_in(spark, everything)
    for partition_id in expected:
        assert kinds([row for row in found if row["partition_id"] == partition_id]) == expected[partition_id]
    assert len(found) == len(kinds_planted) - 1
    for row in found:
        assert (row["queue"], row["partition"]) == ("orders", 0)
        assert row["explanation"]
        sent = row["kind"] != "unsent"
        assert row["message_id"] == (message_id(7, row["sequence"]) if sent else None)


@pytest.mark.beside
def test_a_queue_that_is_followed_no_more_and_then_again_adds_up(spark: SparkSession) -> None:
    partition = Partition()
    partition.sent(1, 4)
    partition.leased(1)
    partition.happens(Change.UNFOLLOWED, 1, 4)
    partition.happens(Change.STOOD, 2, 3)  # the first was deleted meanwhile
    partition.worked_on(2)
    partition.leased(3)
    known = all_known(spark, partition)
    states = {one["sequence"]: one["state"] for one in open_messages(known).collect()}
    assert states == {3: "leased", 4: "waiting"}
    (counts,) = ended_counts(known).collect()
    assert (counts["ended"], counts["deleted"], counts["unfollowed"]) == (1, 1, 0)
    # From second 1 to the delete at 6, not to the end of following at 3.
    assert counts["dwell_ms_max"] == 5000
    (begun,) = begun_counts(lifecycle_frame(spark, partition.rows)).collect()
    assert (begun["began"], begun["ended"], begun["unfollowed"]) == (7, 4, 4)
    assert begun["began"] == begun["ended"] + counts["ended"] + len(states)


@pytest.mark.beside
def test_times_and_redeliveries_are_those_of_the_messages(spark: SparkSession) -> None:
    partition = Partition()
    partition.sent(1, 4)  # at second 1
    partition.leased(1, 2)  # 2
    partition.happens(Change.RELEASED, 1, reason="released")  # 3
    partition.worked_on(1)  # 4, 5
    partition.deleted(2)  # 6
    partition.happens(Change.RELEASED, 3, reason="unreceived")  # 7: nobody saw it, whoever leased it
    known = all_known(spark, partition)
    counts = ended_counts(known).selectExpr("*", "to_date(hour) as day")
    row = by_hour(counts).collect()[0]
    assert (row["ended"], row["deleted"], row["expired"], row["redeliveries"]) == (2, 2, 0, 1)
    assert (row["dwell_ms_max"], row["processing_ms_max"]) == (5000, 4000)
    assert row["dwell_ms_p50"] == pytest.approx(4000, rel=0.5)
    states = {one["sequence"]: one["state"] for one in open_messages(known).collect()}
    assert states == {3: "released", 4: "waiting"}
