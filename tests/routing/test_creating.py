"""Making a queue: few words to the store where the name is new, and the right answer where the map is behind."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.cluster.layout import (
    NEXT_ID,
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    decode_partition,
    encode,
    node_key,
    partition_key,
    queue_key,
)
from penstock.cluster.placement import Census
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.creating import made
from penstock.routing.steps import ConflictError, Look, Put, Stored

SETTINGS = QueueSettings(replicas=3)


class World:
    """A store that answers steps, and the map of a front end, which hears only of the nodes."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[bytes, int]] = {}
        self.version = 0
        self.asked: list[str] = []
        self.map = ClusterMap()
        for name in ("a", "b", "c"):
            entry = NodeEntry(node=name, zone=name, native=f"{name}:1", peers=f"{name}:2", started_ms=1)
            self.map.apply(node_key(name), encode(entry))
        self.context = RoutingContext(self.map, producer=1, now_ms=lambda: 0, load=lambda _: 0.0)

    def put(self, key: str, value: bytes) -> None:
        self.version += 1
        self.entries[key] = (value, self.version)

    def make(self, name: str) -> QueueEntry:
        steps = made(self.context, name, SETTINGS, may_differ=False)
        proceed: Any = steps.send
        outcome: Any = None
        while True:
            try:
                step = proceed(outcome)
            except StopIteration as end:
                queue: QueueEntry = end.value
                return queue
            proceed = steps.send
            self.asked.append(f"{type(step).__name__} {step.key}")
            value, version = self.entries.get(step.key, (None, 0))
            if isinstance(step, Look):
                outcome = Stored(value, version)
            elif isinstance(step, Put) and step.version == version:
                self.put(step.key, step.value)
                outcome = self.version
            else:
                proceed, outcome = steps.throw, ConflictError("changed")


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
