"""Those who damage a disk do what they say, and no more: else they would be found where a defect is looked for."""

from __future__ import annotations

from random import Random

import pytest

from penstock.simulation.damage import Stretch, pick_byte
from penstock.simulation.workload.operator import Operator
from penstock.simulation.world import World
from penstock.storage import snapshot
from penstock.storage.disk import DiskFailedError
from tests.backend.harness import NodeHarness


def test_a_read_that_is_to_fail_is_one_of_the_node() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    for _ in range(60):  # enough for a checkpoint
        node.send(queue, [b"x" * 10_000])
    assert snapshot.list_snapshots(node.disk) > [1]

    def fault(operation: str, name: str) -> Exception | None:
        return DiskFailedError("simulated") if operation == "read" else None

    node.disk.fault = fault
    store = node.node._parts.store
    assert pick_byte(node.disk, store.identity.seed, store.committed_position, (), Random(1)) is not None
    assert node.disk.fault is fault


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_start_that_fails_for_another_reason_leaves_no_damage_behind(seed: int) -> None:
    world = World(seed)
    machine = world.machine
    machine.boot()
    world.tasks.start(Operator(world.stage, "operator-0").set_up())
    world.schedule.run(lambda: not world.tasks.active, 10_000)
    machine.crash(power=False)
    disk = machine.disk
    for name in sorted(disk.files()):
        if name.startswith("journal/") and name != "journal/0000000001.journal":
            disk.remove(name)
    disk.capacity = sum(disk.files().values())  # no room for another journal file
    world.faults._boot_damaged()
    assert not machine.is_up
    assert world.faults.counts["bit flip at the start"] == 1
    assert not world.history.flips
    machine.disk.capacity = None
    assert machine.boot()


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_write_that_is_missing_in_the_journal_makes_every_queue_a_suspect(seed: int) -> None:
    """It landed in a file of one queue; in its place is a hole, and whose it was is not known."""
    world = World(1)
    world.machine.boot()
    world.tasks.start(Operator(world.stage, "operator-0").set_up())
    world.schedule.run(lambda: not world.tasks.active, 10_000)
    disk, faults = world.machine.disk, world.faults._inside
    journal = next(name for name in disk.files() if name.startswith("journal/"))
    other = next(name for name in disk.files() if not name.startswith("journal/"))
    written = Stretch(journal, 0, 1, 0, frozenset({1}), 0, 1)
    landed = Stretch(other, 0, 1, 0, frozenset({2}), 0, 2)
    before = disk.contents(journal)
    faults._misdirect(world.machine, written, landed, Random(seed))
    is_missing = disk.contents(journal) != before
    assert (None in {flip.owner for flip in world.history.flips}) is is_missing
    assert {1, 2} <= {flip.owner for flip in world.history.flips}
