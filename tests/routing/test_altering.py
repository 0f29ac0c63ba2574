"""Changing a queue of a cluster: what is written to the store."""

from __future__ import annotations

from typing import Any

from penstock.cluster.layout.entries import decode_partition, decode_queue, encode, partition_key, queue_key
from penstock.cluster.layout.partition_settings import settings_of_partition
from penstock.model.errors import VersionConflictError
from penstock.model.settings import QueueSettings
from penstock.routing.altering import alter
from penstock.routing.creating import made
from penstock.steps.step import Look, Put, Reply, Steps, Stored
from penstock.wire.messages import AlterQueue
from tests.routing.test_creating import World


def written(**changes: str | int | None) -> list[str]:
    """The keys that are written, up to the first question to a node, where a queue is altered whose dead-letter queue is
    missing."""
    world = World()
    settings = QueueSettings(dead_letter_queue="dead", max_receives=3)
    queue = world.run(made(world.context, "orders", settings, may_differ=False))
    world.map.apply(queue_key("orders"), encode(queue))
    steps = alter(world.context, AlterQueue("orders", changes))
    outcome: Any = None
    keys: list[str] = []
    while True:
        step: Any = steps.send(outcome)
        if isinstance(step, Look):
            outcome = Stored(*world.entries.get(step.key, (None, 0)))
        elif isinstance(step, Put):
            world.put(step.key, step.value)
            keys.append(step.key)
            outcome = world.version
        else:
            return keys


def test_a_dead_letter_queue_that_was_deleted_is_made_again_only_where_it_is_named() -> None:
    assert queue_key("dead") not in written(visibility_timeout_ms=31_000)
    assert queue_key("orders") in written(visibility_timeout_ms=31_000)
    assert queue_key("dead") in written(dead_letter_queue="dead")


class Operator:
    """One who alters a queue, step by step."""

    def __init__(self, world: World, **changes: str | int | None) -> None:
        self._world = world
        self._steps: Steps[Reply] = alter(world.context, AlterQueue("orders", changes))
        self._step: Any = next(self._steps)

    def go_on(self, until: str = "") -> None:
        """Until something was written under this key; without one until nodes are asked."""
        entries = self._world.entries
        while isinstance(self._step, Look | Put):
            step = self._step
            if isinstance(step, Look):
                self._step = self._steps.send(Stored(*entries.get(step.key, (None, 0))))
            elif entries.get(step.key, (None, 0))[1] != step.version:
                self._step = self._steps.throw(VersionConflictError())
            else:
                self._world.put(step.key, step.value)
                self._step = self._steps.send(self._world.version)
                if step.key == until:
                    return


def test_a_change_is_not_taken_back_by_one_that_began_before_it_and_ends_later() -> None:
    """What a queue promised when its change was answered, it keeps: partitions go by what the queue says now."""
    world = World()
    queue = world.run(made(world.context, "orders", QueueSettings(replication="async"), may_differ=False))
    world.map.apply(queue_key("orders"), encode(queue))
    slow = Operator(world, visibility_timeout_ms=31_000)
    slow.go_on(until=queue_key("orders"))
    quick = Operator(world, replication="sync")
    quick.go_on()
    slow.go_on()
    says = decode_queue(_value(world, queue_key("orders"))).settings
    assert (says.replication, says.visibility_timeout_ms) == ("sync", 31_000)
    for partition in queue.partitions:
        assert decode_partition(_value(world, partition_key(partition))).settings == settings_of_partition(
            says
        )


def _value(world: World, key: str) -> bytes:
    value = world.entries[key][0]
    assert value is not None
    return value
