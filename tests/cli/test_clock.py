"""`penstock clock`, `penstock id` and `penstock send --timestamp`, against a real server."""

from __future__ import annotations

import time

import pytest

from penstock.ordering.timestamp_id import from_text
from tests.cli.conftest import Penstock


def test_the_clock_is_shown_for_people_and_for_programs(penstock: Penstock) -> None:
    shown = penstock("clock")
    assert shown.code == 0
    for words in ("by the server's clock", "its own clock, which defines it", "round trip", "200 millionths"):
        assert words in shown.output
    (facts,) = penstock("clock", "--json").objects
    assert facts["source"] == "own"
    assert facts["server_uncertainty_us"] == 0
    assert facts["earliest_us"] <= facts["latest_us"]
    assert abs(facts["latest_us"] / 1e6 - time.time()) < 60
    assert 0 < facts["uncertainty_us"] <= facts["round_trip_us"] + 1_000
    assert facts["drift_ppm"] == 200


def test_ids_are_unique_and_sorted(penstock: Penstock) -> None:
    first = penstock("id").output.split()
    more = penstock("id", "--count", "1000").output.split()
    assert (len(first), len(more)) == (1, 1_000)
    assert first + more == sorted({*first, *more})
    (facts,) = penstock("id", "--json").objects
    assert from_text(facts["id"]) == (facts["time_us"], facts["process"], facts["counter"])
    assert facts["id"] > more[-1]


@pytest.mark.parametrize("count", ["0", "100001"])
def test_ids_are_taken_in_reasonable_numbers(penstock: Penstock, count: str) -> None:
    assert penstock("id", "--count", count).code == 2


def test_a_message_is_sent_with_the_time_of_its_event(penstock: Penstock, queue: str) -> None:
    assert penstock("send", queue, "a", "--timestamp", "2026-03-01T12:00:00.25Z").code == 0
    assert penstock("send", queue, "b", "--timestamp", "1.5").code == 0
    first, second = penstock("peek", queue, "--json").objects
    assert first["stamp_us"] == 1_772_366_400_250_000
    assert second["stamp_us"] == 1_500_000
    assert from_text(first["timestamp_id"]).time_us == first["stamp_us"]


@pytest.mark.parametrize("text", ["yesterday", "2026-03-01T12:00:00"])
def test_a_time_that_is_none_is_explained(penstock: Penstock, queue: str, text: str) -> None:
    refused = penstock("send", queue, "a", "--timestamp", text)
    assert refused.code == 2
    assert "is not a time with its zone" in refused.errors


def test_a_late_message_says_how_late_it_was(penstock: Penstock, queue: str) -> None:
    name = f"{queue}-by-time"
    created = penstock(
        "queue", "create", name, "--ordering", "clock", "--stamps", "producer", "--window", "0"
    )
    assert created.code == 0, created.errors
    assert penstock("send", name, "on time").code == 0
    (message,) = penstock("receive", name, "--wait", "20s", "--json").objects
    hour_ago = str(message["stamp_us"] / 1e6 - 3_600)
    assert penstock("send", name, "late", "--timestamp", hour_ago).code == 0
    (late,) = penstock("receive", f"{name}.late", "--wait", "20s", "--visibility", "0", "--json").objects
    assert abs(late["late"]["lateness_us"] - 3_600_000_000) < 1_000
    assert late["late"]["should_have_preceded"] == message["timestamp_id"]
    shown = penstock("peek", f"{name}.late").output
    assert "late by 3600" in shown
    assert "would have had it in time" in shown


def test_a_stamp_in_the_future_may_be_sent_again_later(penstock: Penstock, queue: str) -> None:
    name = f"{queue}-by-time"
    penstock("queue", "create", name, "--ordering", "clock", "--stamps", "producer")
    refused = penstock("send", name, "a", "--timestamp", str(time.time() + 3_600))
    assert refused.code == 4
    assert "after the latest possible time according to this server" in refused.errors
