"""A cluster of few real programs: some nodes and a front end over an etcd, and a client of theirs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import penstock
from penstock.metadata.seals.seals import layout_sealers
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import MetadataStore
from penstock.metadata.store.sealed import sealed
from tests.process.test_cluster_nodes import Program


class FewPrograms(NamedTuple):
    """What runs, and how it is spoken with."""

    client: penstock.Client
    nodes: dict[str, Program]
    store: MetadataStore
    native_url: str


@asynccontextmanager
async def few_programs(
    etcd: str, place: Path, count: int, *node_options: str, seconds: float
) -> AsyncIterator[FewPrograms]:
    """Inside the block, for so long at most; each node has a zone of its own. They are killed in the end."""
    secret = place / "secret"
    secret.write_text("0123456789abcdef0123456789abcdef")
    shared = ("--cluster", etcd, "--secret-file", str(secret))
    nodes = {
        name: Program(
            *("node", "run", "--name", name, "--zone", name, *shared, "--data", str(place / name)),
            *("--listen", "127.0.0.1:0", "--peers-listen", "127.0.0.1:0", "--monitoring-listen", "off"),
            *node_options,
        )
        for name in (f"node-{number}" for number in range(1, count + 1))
    }
    front = Program(
        *("frontend", "--name", "front", *shared, "--data", str(place / "front")),
        *("--native-listen", "127.0.0.1:0", "--sqs-listen", "127.0.0.1:0"),
    )
    store = sealed(await open_etcd_store(etcd), layout_sealers(secret.read_bytes()))
    try:
        await asyncio.gather(*(program.start() for program in nodes.values()))
        await front.start()
        native = str(front.ready["native_url"])
        async with asyncio.timeout(seconds), penstock.connect(native) as client:
            yield FewPrograms(client, nodes, store, native)
    finally:
        await store.close()
        for program in (*nodes.values(), front):
            await program.end(signal.SIGKILL)
