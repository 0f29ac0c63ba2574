"""The job `usage`: sums and percentiles are those of the requests, however they came."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.pipeline.jobs.usage import KEYS, partial_sums, summed
from tests.pipeline.rows import NOON, usage_frame, usage_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_sums_of_parts_are_sums_of_requests(spark: SparkSession) -> None:
    dice = random.Random(1)
    outcomes = ["ok"] * 8 + ["RequestThrottled", "AccessDenied"]
    rows = [
        usage_row(
            number,
            time=NOON + timedelta(seconds=dice.randrange(7200)),
            user=dice.choice(["ada", "bob", ""]),
            action=dice.choice(["SendMessage", "ReceiveMessage"]),
            messages=dice.randrange(10),
            outcome=dice.choice(outcomes),
            latency_us=int(dice.lognormvariate(8, 1.2)),
        )
        for number in range(2000)
    ]
    parts = partial_sums(usage_frame(spark, rows[:700])).unionByName(
        partial_sums(usage_frame(spark, rows[700:]))
    )
    found = {
        (row["hour"].hour, *(row[key] for key in KEYS)): row
        for row in summed(parts, "hour", "hour").collect()
    }
    assert sum(row["requests"] for row in found.values()) == 2000
    # Spark shows times of a session in UTC in the zone of this computer: the hour is compared by its minutes only.
    first_hour = min(key[0] for key in found)
    chosen = [
        row
        for row in rows
        if row["user"] == "ada" and row["action"] == "SendMessage" and row["time"] < NOON + timedelta(hours=1)
    ]
    row = found[(first_hour, "000000000000", "ada", rows[0]["queue"], "SendMessage")]
    assert row["requests"] == len(chosen)
    assert row["messages"] == sum(one["messages"] for one in chosen)
    assert row["errors"] == sum(one["outcome"] != "ok" for one in chosen)
    assert row["throttles"] == sum(one["outcome"] == "RequestThrottled" for one in chosen)
    latencies = sorted(one["latency_us"] for one in chosen)
    assert row["latency_us_max"] == latencies[-1]
    for percent in (50, 95, 99):
        exact = latencies[max(0, -(-percent * len(latencies) // 100) - 1)]
        assert row[f"latency_us_p{percent}"] == pytest.approx(exact, rel=0.28), "within a bucket"


def test_percentiles_of_one_request_are_its_latency(spark: SparkSession) -> None:
    rows = [usage_row(1, latency_us=40), usage_row(2, user="slow", latency_us=30_000_000)]
    found = {
        row["user"]: row for row in summed(partial_sums(usage_frame(spark, rows)), "day", "date").collect()
    }
    assert found["ada"]["latency_us_p50"] == 40
    assert found["slow"]["latency_us_p99"] == 30_000_000
    assert found["slow"]["date"] == NOON.date()


def test_rows_that_stand_for_many_refused_requests_count_as_many(spark: SparkSession) -> None:
    rows = [
        usage_row(1, user="", action="Refused", messages=500, outcome="MissingAuthenticationToken"),
        usage_row(2, user="", action="Refused", messages=20, outcome="RequestThrottled"),
        usage_row(3, user="", action="SendMessage", messages=0, outcome="InvalidClientTokenId"),
    ]
    found = {
        row["action"]: row for row in summed(partial_sums(usage_frame(spark, rows)), "day", "date").collect()
    }
    sums = found["Refused"]
    assert (sums["requests"], sums["messages"], sums["errors"], sums["throttles"]) == (520, 0, 520, 20)
    assert (found["SendMessage"]["requests"], found["SendMessage"]["errors"]) == (1, 1)
