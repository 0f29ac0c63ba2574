"""What a simulated front end knows of the store, by what it looked up and what it was told."""

from __future__ import annotations

from random import Random

from penstock.cluster.layout.entries import QueueEntry, encode, queue_key
from penstock.model.settings import QueueSettings
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.step_world import StepWorld
from penstock.simulation.schedule import Schedule
from penstock.steps.step import Look

QUEUE = QueueEntry(name="orders", queue_id=7, settings=QueueSettings(), created_ms=0, partitions=[8])


def test_a_queue_that_was_looked_for_often_is_known_once_it_is_made() -> None:
    schedule, random = Schedule(1_700_000_000_000), Random(1)
    metadata = SimulatedMetadata(schedule, random)
    world = StepWorld("front end", {}, Fabric([], metadata, schedule, random), metadata, schedule, random)
    found: list[object] = []
    for _ in range(20):
        world.start(Look(queue_key("orders")), found.append)
        schedule.run_for(100)
    metadata.put(queue_key("orders"), encode(QUEUE))
    schedule.run_for(1_000)
    assert len(found) == 20
    assert world.map.ready("orders") == QUEUE
