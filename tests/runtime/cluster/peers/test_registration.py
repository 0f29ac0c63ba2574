"""A node's lease: until when it counts on it, also when it gives the lease back itself."""

from __future__ import annotations

import asyncio

from penstock.cluster.layout.entries import NodeEntry, node_key
from penstock.metadata.store.memory import MemoryStore
from penstock.runtime.cluster.peers.registration import Registration
from tests.runtime.harness import async_test

NOW_MS = 1_700_000_000_000


class WatchedStore(MemoryStore):
    """Notes what the node counts on when its lease is given back."""

    def __init__(self) -> None:
        super().__init__()
        self.until_ms: list[int] = []
        self.at_the_end: int | None = None

    async def revoke(self, lease: int) -> None:
        self.at_the_end = self.until_ms[-1]
        await super().revoke(lease)


@async_test
async def test_who_gives_its_lease_back_counts_on_it_no_more() -> None:
    store = WatchedStore()
    entry = NodeEntry(node="node-1", native="127.0.0.1:1", peers="127.0.0.1:2", started_ms=NOW_MS)
    registration = Registration(store, entry, lambda: NOW_MS, store.until_ms.append, lambda started_ms: None)
    running = asyncio.create_task(registration.run())
    await registration.registered.wait()
    assert store.until_ms[-1] > NOW_MS
    running.cancel()
    await registration.leave()
    # Others may lead from the moment of the revocation: whoever acknowledges alone must have stopped before.
    assert store.at_the_end is not None
    assert store.at_the_end <= NOW_MS
    assert await store.get(node_key("node-1")) is None
    await store.close()
