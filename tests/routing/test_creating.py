"""Making a queue: few words to the store where the name is new, and the right answer where the map is behind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.cluster.layout.entries import (
    IDS,
    NEXT_ID,
    PARTITIONS,
    IdsEntry,
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    decode_ids,
    decode_partition,
    decode_queue,
    encode,
    node_key,
    partition_key,
    queue_key,
)
from penstock.cluster.manager.placement import Census
from penstock.model.document import UNSEALED
from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.model.settings import QueueSettings
from penstock.routing import creating
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.creating import made
from penstock.routing.deleting import delete
from penstock.steps.step import Look, Put, Reply, Result, Steps, Stored
from penstock.wire.messages import DeleteQueue, Done

SETTINGS = QueueSettings(replicas=3)


class World:
    """A store that answers steps, and the map of a front end, which hears only of the nodes."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[bytes, int]] = {}
        self.version = 0
        self.asked: list[str] = []
        self.away: str | None = None
        """Keys that begin so cannot be reached."""
        self.map = ClusterMap()
        for name in ("a", "b", "c"):
            entry = NodeEntry(node=name, zone=name, native=f"{name}:1", peers=f"{name}:2", started_ms=1)
            self.map.apply(node_key(name), encode(entry))
        self.context = RoutingContext(self.map, producer=1, now_ms=lambda: 0, load=lambda _: 0.0)

    def put(self, key: str, value: bytes) -> None:
        self.version += 1
        self.entries[key] = (value, self.version)

    def make(self, name: str) -> QueueEntry:
        return self.run(made(self.context, name, SETTINGS, may_differ=False))

    def delete(self, name: str) -> Reply:
        return self.run(delete(DeleteQueue(name)))

    def partitions(self, queue: QueueEntry) -> list[PartitionEntry]:
        return [decode_partition(self.entries[partition_key(one)][0]) for one in queue.partitions]

    def run(self, steps: Steps[Result]) -> Result:
        """Carries the steps out."""
        proceed: Any = steps.send
        outcome: Any = None
        while True:
            try:
                step = proceed(outcome)
            except StopIteration as end:
                result: Result = end.value
                return result
            proceed = steps.send
            self.asked.append(f"{type(step).__name__} {step.key}")
            value, version = self.entries.get(step.key, (None, 0))
            if self.away is not None and step.key.startswith(self.away):
                proceed, outcome = steps.throw, PenstockError(ErrorCode.UNREACHABLE, "the store is away")
            elif isinstance(step, Look):
                outcome = Stored(value, version)
            elif isinstance(step, Put) and step.version == version:
                self.put(step.key, step.value)
                outcome = self.version
            else:
                proceed, outcome = steps.throw, VersionConflictError("changed")


def test_a_new_queue_is_two_writes() -> None:
    world = World()
    world.make("first")
    world.asked.clear()
    queue = world.make("second")
    assert world.asked == [f"Put {partition_key(queue.partitions[0])}", f"Put {queue_key('second')}"]


def test_a_queue_that_the_map_has_not_heard_of_is_found_and_nothing_is_left_behind() -> None:
    world = World()
    existing = QueueEntry(name="q", queue_id=7, settings=SETTINGS, created_ms=0, partitions=[8])
    world.put(NEXT_ID, b"100")
    world.put(queue_key("q"), encode(existing))
    assert world.make("q") == existing
    given_up = [decode_partition(value) for key, (value, _) in world.entries.items() if "partitions" in key]
    assert [(entry.retired, sorted(entry.leaving)) for entry in given_up] == [(True, ["a", "b", "c"])]


def test_what_is_given_up_leaves_the_nodes_that_hold_it_by_now() -> None:
    world = World()
    existing = QueueEntry(name="q", queue_id=7, settings=SETTINGS, created_ms=0, partitions=[8])
    world.put(NEXT_ID, b"100")
    world.put(queue_key("q"), encode(existing))
    put = world.put

    def moves_on(key: str, value: bytes) -> None:
        """The manager has a node more hold the partition, and its primary serves, before the name is seen to be taken."""
        put(key, value)
        if key.startswith(PARTITIONS) and not (entry := decode_partition(value)).retired:
            replicas = [*entry.replicas, "d"]
            put(key, encode(msgspec.structs.replace(entry, replicas=replicas, serving=entry.epoch)))

    world.put = moves_on  # type: ignore[method-assign]  # of this object alone
    assert world.make("q") == existing
    given_up = [decode_partition(value) for key, (value, _) in world.entries.items() if "partitions" in key]
    assert [(entry.retired, sorted(entry.leaving)) for entry in given_up] == [(True, ["a", "b", "c", "d"])]
    assert [entry.serving for entry in given_up] == [1]


def test_ids_that_were_counted_are_taken_by_the_attempt_that_counted_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(creating, "ATTEMPTS", 1)
    world = World()
    assert world.make("q").partitions
    assert queue_key("q") in world.entries


def test_a_count_of_ids_that_was_put_back_gives_out_no_id_twice() -> None:
    """The count that earlier versions go by has no seal: somebody without the secret can lower it."""
    world = World()
    used = {world.make(f"q{number}").queue_id for number in range(40)}
    world.put(NEXT_ID, b"1")
    front_end = RoutingContext(world.map, producer=2, now_ms=lambda: 0, load=lambda _: 0.0)
    for number in range(40):
        queue = world.run(made(front_end, f"r{number}", SETTINGS, may_differ=False))
        assert used.isdisjoint({queue.queue_id, *queue.partitions})
        used |= {queue.queue_id, *queue.partitions}


def test_no_id_is_given_out_that_is_in_the_layout_whatever_the_counts_say() -> None:
    world = World()
    known = QueueEntry(
        name="known", queue_id=4_000, settings=SETTINGS, created_ms=0, partitions=[4_001, 4_002]
    )
    world.map.apply(queue_key("known"), encode(known))
    world.map.apply(queue_key("known"), None)
    world.put(NEXT_ID, b"3999")
    world.put(IDS, encode(IdsEntry(next=3_999)))
    assert world.make("q").queue_id == 4_003
    world.put(NEXT_ID, b"1")
    world.put(IDS, encode(IdsEntry(next=1)))
    for number in range(40):
        world.make(f"r{number}")
    assert world.make("s").queue_id > 4_003 + 2 * 40


def test_the_count_of_an_earlier_version_goes_on_and_is_raised_for_it() -> None:
    world = World()
    world.put(NEXT_ID, b"700")
    assert world.make("q").queue_id == 700
    assert int(world.entries[NEXT_ID][0]) == decode_ids(world.entries[IDS][0]).next > 701
    world.put(NEXT_ID, b"5000")  # a front end of an earlier version took some
    front_end = RoutingContext(ClusterMap(), producer=2, now_ms=lambda: 0, load=lambda _: 0.0)
    front_end.map.nodes.update(world.map.nodes)
    assert world.run(made(front_end, "r", SETTINGS, may_differ=False)).queue_id == 5_000


@pytest.mark.parametrize("spoiled", [b"", b"none", b"-3", b"9" * 18, b"9" * 40, b"\xff"])
def test_a_spoiled_count_without_a_seal_neither_stops_anybody_nor_uses_up_the_ids(spoiled: bytes) -> None:
    world = World()
    world.put(IDS, encode(IdsEntry(next=100)))
    world.put(NEXT_ID, spoiled)
    assert world.make("q").queue_id == 100


def test_nothing_is_made_by_a_count_with_a_wrong_seal() -> None:
    world = World()
    world.put(IDS, UNSEALED)
    with pytest.raises(PenstockError, match="cannot be trusted") as refused:
        world.make("q")
    assert refused.value.code is ErrorCode.METADATA_UNAVAILABLE


def test_a_node_that_is_about_to_stop_is_given_nothing() -> None:
    world = World()
    stops = NodeEntry(node="a", zone="a", native="a:1", peers="a:2", started_ms=1, leaving=True)
    world.map.apply(node_key("a"), encode(stops))
    queue = world.make("q")
    made_entry = decode_partition(world.entries[partition_key(queue.partitions[0])][0])
    assert sorted(made_entry.replicas) == ["b", "c"]  # the manager adds the third when the node is back
    assert queue.settings.replicas == 3


def test_the_census_is_what_counting_anew_would_say() -> None:
    world = World()
    first = PartitionEntry(
        partition=1,
        queue_id=1,
        queue="q",
        ordinal=0,
        settings=SETTINGS,
        epoch=1,
        primary="a",
        replicas=["a", "b", "c"],
        in_sync=["a", "b", "c"],
    )
    second = msgspec.structs.replace(first, partition=2, primary="b")
    for entry in (
        first,
        second,
        msgspec.structs.replace(first, epoch=2, primary="c", replicas=["a", "c"]),
        msgspec.structs.replace(second, primary=None),
    ):
        world.map.apply(partition_key(entry.partition), encode(entry))
        counted = Census(world.map.partitions.values())
        for node in ("a", "b", "c"):
            assert world.map.census.held.get(node, 0) == counted.held.get(node, 0)
            assert world.map.census.led.get(node, 0) == counted.led.get(node, 0)
    world.map.apply(partition_key(1), None)
    world.map.apply(partition_key(2), b"no entry")
    assert not any(world.map.census.held.values())
    assert not any(world.map.census.led.values())


# -- deleting, and making again ------------------------------------------------------------------------------


def test_whoever_deletes_a_queue_tells_its_partitions() -> None:
    world = World()
    queue = world.make("q")
    assert world.delete("q") == Reply(Done())
    assert decode_queue(world.entries[queue_key("q")][0]).state == "deleting"
    (entry,) = world.partitions(queue)
    assert entry.deleted
    assert len(entry.replicas) == 3, "nothing is dropped by that"


def test_a_queue_is_deleted_though_its_partitions_cannot_be_told() -> None:
    world = World()
    queue = world.make("q")
    world.away = PARTITIONS
    assert world.delete("q") == Reply(Done())
    assert decode_queue(world.entries[queue_key("q")][0]).state == "deleting"
    assert not world.partitions(queue)[0].deleted, "the manager does it"


def test_a_queue_is_made_again_at_once_where_whoever_deleted_it_died_in_the_middle() -> None:
    world = World()
    old = world.make("q")
    world.put(queue_key("q"), encode(msgspec.structs.replace(old, state="deleting")))
    new = world.make("q")
    assert new.queue_id > old.queue_id
    assert decode_queue(world.entries[queue_key("q")][0]) == new
    assert [entry.deleted for entry in world.partitions(old)] == [True], "it is told before its queue is gone"
    assert [entry.deleted for entry in world.partitions(new)] == [False]


def test_for_clients_a_partition_of_a_deleted_queue_is_gone() -> None:
    world = World()
    queue = world.make("q")
    (entry,) = world.partitions(queue)
    key = partition_key(entry.partition)
    world.map.apply(queue_key("q"), encode(queue))
    world.map.apply(key, encode(msgspec.structs.replace(entry, serving=entry.epoch)))
    assert world.map.leader(entry.partition) is not None
    world.map.apply(key, encode(msgspec.structs.replace(entry, serving=entry.epoch, deleted=True)))
    assert entry.partition not in world.map.partitions
    assert world.map.leader(entry.partition) is None
