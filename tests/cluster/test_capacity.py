"""What is said of queues that fill, by what the pipeline has worked out."""

from __future__ import annotations

import logging

import msgspec
import pytest

from penstock.cluster.layout.capacity import capacity_entries, capacity_facts, subject, warning
from penstock.cluster.layout.entries import CapacityEntry, QueueEntry, capacity_key, encode, queue_key
from penstock.cluster.layout.view import ClusterView
from penstock.model.settings import QueueSettings
from penstock.runtime.cluster.capacity_log import CapacityLog

HOUR_MS = 3_600_000
ENTRY = CapacityEntry(
    queue="orders",
    measured_ms=1_000 * HOUR_MS,
    messages=500,
    bytes=5_000,
    messages_per_hour=10.0,
    bytes_per_hour=100.0,
    limit="max-messages",
    fill=0.5,
    full_at_ms=1_030 * HOUR_MS,
    partitions=4,
    recommended_partitions=4,
)


def changed(**changes: object) -> CapacityEntry:
    return msgspec.structs.replace(ENTRY, **changes)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (ENTRY, "the queue orders is at 50% of its max-messages and reaches 80 % in about 30 hours"),
        (changed(full_at_ms=1_100 * HOUR_MS), "reaches 80 % in about 4 days"),
        (changed(fill=0.9, full_at_ms=ENTRY.measured_ms), "the queue orders is at 90% of its max-messages"),
        (
            changed(full_at_ms=None, recommended_partitions=8),
            "the queue orders has 4 partitions where its busiest minute asks for 8",
        ),
        (changed(recommended_partitions=8), "30 hours, and has 4 partitions where"),
    ],
)
def test_a_queue_that_fills_or_is_too_narrow_is_told_of(entry: CapacityEntry, sentence: str) -> None:
    assert sentence in warning(entry)


def test_nothing_is_said_of_a_queue_that_is_well() -> None:
    assert warning(changed(full_at_ms=None)) == ""
    assert warning(changed(full_at_ms=None, recommended_partitions=1)) == ""


def view_of(*entries: CapacityEntry) -> ClusterView:
    view = ClusterView()
    queue = QueueEntry(
        name="orders", queue_id=1, settings=QueueSettings(), created_ms=0, partitions=[2, 3, 4, 5]
    )
    view.apply(queue_key("orders"), encode(queue), 1, 0)
    for entry in entries:
        view.apply(capacity_key(entry.queue), encode(entry), 2, 0)
    return view


def test_rows_are_of_queues_that_are_there_and_what_cannot_be_read_is_left_alone() -> None:
    view = view_of(ENTRY, changed(queue="gone"))
    view.apply(capacity_key("odd"), b"{}", 3, 0)
    assert capacity_entries(view) == [ENTRY]
    assert list(view.unreadable) == [capacity_key("odd")]
    view.apply(capacity_key("orders"), None, 4, 0)
    assert not capacity_entries(view)


def test_programs_read_every_field_of_the_entry_and_the_sentence() -> None:
    facts = capacity_facts(ENTRY)
    assert facts.pop("warning") == warning(ENTRY)
    assert msgspec.convert(facts, CapacityEntry) == ENTRY


def test_a_manager_says_it_once_and_again_when_it_is_something_else(caplog: pytest.LogCaptureFixture) -> None:
    view = view_of(ENTRY, changed(queue="gone"))
    spoken = CapacityLog(view)

    def said(entry: CapacityEntry | None) -> list[str]:
        caplog.clear()
        view.apply(capacity_key("orders"), encode(entry) if entry is not None else None, 5, 0)
        spoken.look_at("orders")
        return caplog.messages

    with caplog.at_level(logging.WARNING):
        spoken.look_at_all()
        assert caplog.messages == [warning(ENTRY)]
        later = changed(measured_ms=1_001 * HOUR_MS, fill=0.51)
        assert subject(later) == subject(ENTRY)
        assert not said(later)
        wider = changed(recommended_partitions=8)
        assert said(wider) == [warning(wider)]
        assert not said(changed(full_at_ms=None))
        assert said(ENTRY) == [warning(ENTRY)]
        assert not said(None)
        assert len(spoken) == 0
