"""What the manager does, step by step, about queues that nobody uses."""

from __future__ import annotations

import msgspec
import pytest

from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.entries import (
    Expiry,
    PartitionEntry,
    QueueEntry,
    decode_partition,
    decode_queue,
    encode,
    partition_key,
    queue_key,
)
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.idle_expiry import expire_idle, primary_says
from penstock.model.settings import QueueSettings

SETTINGS = QueueSettings(replicas=1, partitions=2, idle_expiry_ms=60_000)
QUEUE = QueueEntry(name="q", queue_id=9, settings=SETTINGS, created_ms=0, partitions=[1, 2])


def partition(number: int, *, idle: int = 3, expiry: Expiry = "", **changes: object) -> PartitionEntry:
    entry = PartitionEntry(
        partition=number,
        queue_id=9,
        queue="q",
        ordinal=number - 1,
        settings=SETTINGS,
        epoch=3,
        serving=3,
        primary="a",
        replicas=["a"],
        in_sync=["a"],
        idle=idle,
        expiry=expiry,
    )
    return msgspec.structs.replace(entry, **changes)


def changes(queue: QueueEntry, *partitions: PartitionEntry) -> list[Change]:
    view = ClusterView()
    view.apply(queue_key("q"), encode(queue), 7, 0)
    for entry in partitions:
        view.apply(partition_key(entry.partition), encode(entry), 10 + entry.partition, 0)
    return expire_idle(view)


def queue_after(queue: QueueEntry, *partitions: PartitionEntry) -> QueueEntry:
    (change,) = changes(queue, *partitions)
    assert (change.key, change.version) == (queue_key("q"), 7)
    assert change.value is not None
    return decode_queue(change.value)


EXPIRING = msgspec.structs.replace(QUEUE, expiring=True)


def test_a_queue_expires_when_all_its_partitions_are_idle() -> None:
    assert queue_after(QUEUE, partition(1), partition(2)).expiring
    assert not changes(QUEUE, partition(1))


@pytest.mark.parametrize(
    "other",
    [
        partition(2, idle=0),
        partition(2, idle=2),
        partition(2, serving=2),
        partition(2, primary=None),
    ],
    ids=["used", "another epoch", "not served yet", "not led"],
)
def test_it_does_not_while_one_is_used_or_was_led_by_another_node(other: PartitionEntry) -> None:
    assert not changes(QUEUE, partition(1), other)
    assert not queue_after(EXPIRING, partition(1), other).expiring


def test_primaries_are_asked_to_close_and_the_queue_goes_when_they_have() -> None:
    asked = changes(EXPIRING, partition(1), partition(2, expiry="closed"))
    assert [(change.key, change.version) for change in asked] == [(partition_key(1), 11)]
    assert asked[0].value is not None
    assert decode_partition(asked[0].value).expiry == "asked"
    assert not changes(EXPIRING, partition(1, expiry="asked"), partition(2, expiry="closed"))
    assert queue_after(EXPIRING, *(partition(n, expiry="closed") for n in (1, 2))).state == "deleting"


def test_the_queue_says_that_it_stays_before_anything_is_opened() -> None:
    woken, other = partition(1, idle=0, expiry="closed"), partition(2, expiry="closed")
    assert not queue_after(EXPIRING, woken, other).expiring
    opened = changes(QUEUE, woken, other)
    assert [change.key for change in opened] == [partition_key(1), partition_key(2)]
    for change in opened:
        assert change.value is not None
        entry = decode_partition(change.value)
        assert (entry.expiry, entry.idle) == ("", 0)


def test_a_queue_does_not_expire_again_before_all_of_it_is_open() -> None:
    found = changes(QUEUE, partition(1, expiry="closed"), partition(2))
    assert [change.key for change in found] == [partition_key(1)]


def test_queues_without_the_setting_and_those_that_are_deleted_are_left_alone() -> None:
    forever = msgspec.structs.replace(QUEUE, settings=QueueSettings(replicas=1, partitions=2))
    assert not changes(forever, partition(1), partition(2))
    gone = msgspec.structs.replace(EXPIRING, state="deleting")
    assert not changes(gone, partition(1, idle=0, expiry="closed"), partition(2, expiry="closed"))


def test_a_primary_closes_only_what_it_said_to_be_idle_in_its_own_epoch() -> None:
    assert primary_says(partition(1, idle=2, expiry="asked"), idle=True) == partition(1, expiry="asked")
    assert primary_says(partition(1, expiry="asked"), idle=True).expiry == "closed"
    used = primary_says(partition(1, expiry="asked"), idle=False)
    assert (used.idle, used.expiry) == (0, "asked")
    assert primary_says(partition(1, expiry="closed"), idle=False).expiry == "closed", "the manager opens it"
