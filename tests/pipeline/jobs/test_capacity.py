"""The job `capacity`: how queues grow, and when they are full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs.capacity import by_hour, forecasts, growth, partial_counts
from penstock.pipeline.jobs.capacity_forecast import Growth, forecast, recommended_partitions
from penstock.pipeline.jobs.job import ServerFacts
from tests.pipeline.rows import NOON, Partition, lifecycle_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON_US = int(NOON.timestamp() * 1e6)
HOUR_US = 3_600_000_000


def test_a_growing_queue_is_full_when_arithmetic_says() -> None:
    grown = Growth("orders", 5000, 100.0, 500.0, 10.0)
    found = forecast(grown, {"messages": 5000, "bytes": 500_000, "max_messages": 10_000}, None, NOON_US)
    assert (found.limit, found.fill) == ("max-messages", 0.5)
    assert found.hours_to_full == pytest.approx(6.0)


def test_the_limit_that_comes_first_is_named() -> None:
    grown = Growth("orders", 5000, 1000.0, 500.0, 10.0)
    settings = {"messages": 5000, "bytes": 5_000_000, "max_messages": 10_000, "max_bytes": 7_000_000}
    assert forecast(grown, settings, None, NOON_US).limit == "max-bytes"
    hour_ms = 3_600_000
    aging = {**settings, "oldest_sent_ms": NOON_US // 1000 - 7 * hour_ms, "retention_ms": 11 * hour_ms}
    found = forecast(grown, aging, None, NOON_US)
    assert found.limit == "max-bytes"
    assert found.hours_to_full == pytest.approx(1.2)
    aging["retention_ms"] = 9 * hour_ms
    assert forecast(grown, aging, None, NOON_US).limit == "retention"
    assert forecast(grown, settings, (799, 1000, 1.0), NOON_US).hours_to_full == pytest.approx(1.0)


def test_a_queue_that_shrinks_is_never_full() -> None:
    found = forecast(Growth("orders", 10, 1.0, -5.0, 1.0), {"max_messages": 100}, None, NOON_US)
    assert (found.limit, found.hours_to_full) == ("max-messages", None)
    assert forecast(Growth("orders", 10, 1.0, 5.0, 1.0), None, None, NOON_US).limit == ""


def test_partitions_are_enough_for_the_busiest_minute() -> None:
    assert recommended_partitions(Growth("q", 0, 100.0, 0, 5.0)) == 1
    assert recommended_partitions(Growth("q", 0, 100.0, 0, 70_000.0)) == 4
    assert recommended_partitions(Growth("q", 0, 1 << 20, 0, 50.0)) == 3


def test_growth_is_what_came_less_what_went(spark: SparkSession) -> None:
    partition = Partition()
    partition.sent(1, 600)
    partition.worked_on(1, 100)
    partition.happens(Change.EXPIRED, 101, 50, reason="retention")
    parts = partial_counts(lifecycle_frame(spark, partition.rows))
    now_us = NOON_US + 2 * HOUR_US
    row = growth(by_hour(parts.unionByName(parts.limit(0))), now_us).collect()[0]
    assert (row["messages"], row["bytes_a_message"]) == (450, 100.0)
    assert row["messages_an_hour"] == pytest.approx(225.0)
    assert row["peak"] == pytest.approx(10.0)


def test_queues_that_only_the_server_knows_are_there_too() -> None:
    around = ServerFacts(NOON_US, ({"name": "quiet", "messages": 3, "bytes": 30, "partitions": 2},))
    found = forecasts([Growth("gone", 5, 1.0, 1.0, 1.0)], around)
    assert [(one.queue, one.messages, one.partitions) for one in found] == [("quiet", 3, 2)]


def test_growth_that_nobody_knows_is_not_said_to_be_none() -> None:
    limits = {"messages": 50, "bytes": 500, "max_messages": 100, "partitions": 2}
    aging = {"oldest_sent_ms": NOON_US // 1000 - 60_000, "retention_ms": 3_600_000}
    queues = (
        {"name": "followed", "followed": True, **limits},
        {"name": "once", "followed": False, **limits},
        {"name": "never", "followed": False, **limits, **aging},
        {"name": "full", "followed": False, **limits, "messages": 90},
        {"name": "still", "followed": True, **limits},
    )
    grown = [Growth("followed", 50, 10.0, 10.0, 1.0), Growth("once", 50, 10.0, 1e6, 1e6)]
    found = {one.queue: one for one in forecasts(grown, ServerFacts(NOON_US, queues))}
    for name in ("once", "never", "full"):
        one = found[name]
        assert (one.messages_per_hour, one.bytes_per_hour) == (None, None)
        assert (one.peak_per_second, one.recommended_partitions) == (None, None)
    assert {name: one.hours_to_full for name, one in found.items()} == {
        "followed": pytest.approx(3.0),
        "once": None,
        "never": None,
        "full": 0.0,
        "still": None,
    }
    assert (found["never"].limit, found["never"].fill) == ("max-messages", 0.5)
    assert (found["still"].messages_per_hour, found["still"].recommended_partitions) == (0.0, 1)


def test_the_disk_is_forecast_by_followed_queues_alone() -> None:
    queues = ({"name": "followed", "followed": True}, {"name": "once", "followed": False})
    grown = [Growth("followed", 5, 10.0, 10.0, 1.0), Growth("once", 5, 10.0, 1e6, 1.0)]
    around = ServerFacts(NOON_US, queues, disk_free_bytes=500, disk_total_bytes=1000)
    assert [(one.limit, one.hours_to_full) for one in forecasts(grown, around)] == [("disk", 3.0)] * 2
