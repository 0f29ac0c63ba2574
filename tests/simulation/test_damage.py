"""Looking for a byte to damage is nothing that the node does: faults of its disk do not strike there."""

from __future__ import annotations

from random import Random

from penstock.simulation.damage import pick_byte
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
