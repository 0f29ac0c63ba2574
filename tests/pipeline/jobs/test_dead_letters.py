"""The job `dead-letters`: deaths find the consumer and the error that led to them, and alike errors are one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.columnar.lifecycle import Change
from penstock.frontend.messages.message_id import message_id
from penstock.pipeline.jobs.dead_letters import by_hour, causes, deaths_explained, of_interest
from penstock.pipeline.jobs.fingerprint import fingerprint
from penstock.pipeline.local_rows import local_rows
from tests.pipeline.rows import Partition, lifecycle_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no order 4711", "no order 12"),
        ("user 'ada' is unknown", 'user "bob" is unknown'),
        (
            "request 6f9619ff-8b86-4011-b42d-00c04fc964ff failed",
            "request 00000000-0000-4000-8000-000000000000 failed",
        ),
        ("at 0x7f3a for 1.5 s", "at 0xFFFF for  30 s"),
        ("digest 9f86d081884c7d65", "digest deadbeef00000000"),
    ],
)
def test_errors_that_differ_in_particulars_are_one(spark: SparkSession, one: str, other: str) -> None:
    rows = local_rows(spark, [(one, other)], "one string, other string")
    found = rows.selectExpr(fingerprint("one"), fingerprint("other")).collect()[0]
    assert found[0] == found[1] != ""


def test_errors_of_another_kind_are_another(spark: SparkSession) -> None:
    rows = local_rows(spark, [("no order 1",), ("no address 1",), (None,)], "error string")
    assert len({row[0] for row in rows.selectExpr(fingerprint("error")).collect()}) == 3


@pytest.mark.beside
def test_a_death_has_its_cause(spark: SparkSession) -> None:
    partition = Partition()
    partition.sent(1, 6)
    for attempt in range(3):
        partition.leased(1, 4, consumer="worker-1")
        partition.happens(Change.RELEASED, 1, 4, reason="released", error=f"no stock for order {attempt}")
    killed = {"reason": "max-receives", "receives": 3, "other_queue": "dead"}
    partition.happens(Change.MOVE_STARTED, 1, 4, **killed)
    partition.happens(Change.MOVE_ABANDONED, 1, 4, **killed)  # they die once, however often it is tried
    partition.happens(Change.MOVE_STARTED, 1, 4, **killed)
    partition.happens(Change.MOVE_FINISHED, 1, 4, **killed)
    partition.happens(Change.MOVE_STARTED, 5, reason="expired", receives=0, other_queue="dead")
    partition.happens(Change.MOVE_FINISHED, 5, reason="expired", receives=0, other_queue="dead")
    partition.happens(Change.MOVE_FINISHED, 6, reason="redrive", other_queue="elsewhere")
    rows = of_interest(lifecycle_frame(spark, partition.rows))
    hours = by_hour(deaths_explained(rows, rows))
    found = {row["reason"]: row for row in hours.collect()}
    assert set(found) == {"max-receives", "expired"}
    worst = found["max-receives"]
    assert (worst["messages"], worst["consumer"], worst["receives_max"]) == (4, "worker-1", 3)
    assert worst["fingerprint"] == "no stock for order <n>"
    assert worst["dead_letter_queue"] == "dead"
    assert [sample["sequence"] for sample in worst["samples"]] == [1, 2, 3]
    assert worst["samples"][0]["message_id"] == message_id(7, 1)
    assert worst["samples"][0]["error"] == "no stock for order 2"
    assert found["expired"]["consumer"] == ""
    totals = causes(hours).collect()
    assert [(row["reason"], row["messages"], row["last_day"]) for row in totals] == [
        ("max-receives", 4, 4),
        ("expired", 1, 1),
    ]
