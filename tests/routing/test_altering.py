"""Changing a queue of a cluster: what is written to the store."""

from __future__ import annotations

from typing import Any

from penstock.cluster.layout import encode, queue_key
from penstock.model.settings import QueueSettings
from penstock.routing.altering import alter
from penstock.routing.creating import made
from penstock.routing.steps import Look, Put, Stored
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
