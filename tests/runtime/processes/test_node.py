"""A node of a cluster as a process starts it: whose life it takes over, and what keeps it from starting."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cluster.layout.entries import NodeEntry, decode_node, encode, node_key
from penstock.config.address import Address
from penstock.config.node import NodeConfig
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.metadata.store.memory import MemoryStore
from penstock.runtime.processes.listening import StartError
from penstock.runtime.processes.node import open_cluster_node
from tests.runtime.harness import async_test

ANY = Address("127.0.0.1", 0)
FAR_AHEAD_MS = 9_000_000_000_000


def config_in(directory: Path) -> NodeConfig:
    secret = directory / "secret"
    secret.write_text("a secret of at least thirty-two characters\n")
    secret.chmod(0o600)
    return NodeConfig(
        data_directory=str(directory / "data"),
        listen=ANY,
        monitoring_listen=None,
        cluster_name="node-1",
        cluster_metadata="memory:",
        cluster_secret_file=str(secret),
        cluster_peers_listen=ANY,
    )


@async_test
async def test_a_life_is_a_number_that_was_never_its_own(tmp_path: Path) -> None:
    store = MemoryStore()
    before = NodeEntry(node="node-1", native="127.0.0.1:1", peers="127.0.0.1:2", started_ms=FAR_AHEAD_MS)
    await store.put(node_key("node-1"), encode(before))
    node = await open_cluster_node(config_in(tmp_path), store)
    try:
        entry = await store.get(node_key("node-1"))
        assert entry is not None
        assert decode_node(entry.value).started_ms > FAR_AHEAD_MS
    finally:
        await node.close()


@async_test
async def test_without_the_layout_it_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()

    async def away(prefix: str) -> None:
        raise StoreUnavailableError("nobody answers")

    monkeypatch.setattr(store, "list", away)
    with pytest.raises(StartError, match="cannot read the cluster's layout: nobody answers"):
        await open_cluster_node(config_in(tmp_path), store)
