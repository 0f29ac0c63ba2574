"""A node and a front end of a cluster in this process, with a port for readers, and a wire that counts and can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock
from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.config.node import NodeConfig
from penstock.metadata.store.memory import MemoryStore
from penstock.runtime.local_cluster.certificates import CertificateFiles
from penstock.runtime.processes.front_end import ClusterFrontEnd, open_cluster_front_end
from penstock.runtime.processes.node import ClusterNode, open_cluster_node
from penstock.wire.log_messages import LocateLog, LogAddress

ANY = Address("127.0.0.1", 0)
SECRET = "a secret of at least thirty-two characters"


class Wire:
    """Between a client and whatever it connects to: counts what comes back, and can fall silent."""

    def __init__(self, target: Address = ANY) -> None:
        self.target = target
        self.passes = asyncio.Event()
        """Cleared: nothing passes any more, and nobody is told."""
        self.passes.set()
        self.back_bytes = 0
        self.address = ANY
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listens."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = Address("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self.target.host, self.target.port)
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer, count=True))

    async def _copy(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, count: bool = False
    ) -> None:
        try:
            while data := await source.read(65_536):
                await self.passes.wait()
                if count:
                    self.back_bytes += len(data)
                target.write(data)
                await target.drain()
        except OSError:
            pass  # one end is gone, and so is the other in a moment
        finally:
            target.close()

    def close(self) -> None:
        """Takes nobody any more."""
        if self._server is not None:
            self._server.close()


@dataclass
class Readable:
    """What a test works with."""

    node: ClusterNode
    """The first."""
    nodes: dict[str, ClusterNode]
    front_end: ClusterFrontEnd
    store: MemoryStore
    client: penstock.Client
    front: Wire
    """Between the client and its front end."""

    async def place(self, queue: penstock.Queue, partition: int = 0) -> LogAddress:
        """What the front end says about a partition."""
        link: Any = queue.log()._route.link
        queue_id = (await queue.describe()).queue_id
        found: LogAddress = await link.ask(LocateLog(queue_id, partition), LogAddress)
        return found


@asynccontextmanager
async def readable_cluster(
    directory: Path, nodes: int = 1, shown: CertificateFiles | None = None, **options: Any
) -> AsyncIterator[Readable]:
    """Nodes with a port for readers, one front end, one client; `options` are for the nodes, `shown` is what clients are shown."""
    secret = directory / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    store = MemoryStore()
    shared: dict[str, Any] = {"cluster_metadata": "memory:", "cluster_secret_file": str(secret)}
    shared |= {name: value for name, value in options.items() if name.startswith("cluster_tls")}
    settings: dict[str, Any] = {
        "listen": ANY,
        "monitoring_listen": None,
        "cluster_peers_listen": ANY,
        "reader_listen": ANY,
    }
    front_config = FrontendConfig(
        data_directory=str(directory / "front"),
        native_listen=ANY,
        sqs_listen=None,
        frontend_replicas=1,
        native_tls_certificate=str(shown.certificate) if shown is not None else None,
        native_tls_key=str(shown.key) if shown is not None else None,
        **shared,
    )
    async with AsyncExitStack() as stack:
        opened: dict[str, ClusterNode] = {}
        for name in (f"node-{number}" for number in range(1, nodes + 1)):
            own = {"cluster_name": name, "data_directory": str(directory / name)}
            opened[name] = await open_cluster_node(NodeConfig(**(settings | shared | own | options)), store)
            stack.push_async_callback(opened[name].close)
        front = await open_cluster_front_end(front_config, store)
        stack.push_async_callback(front.close)
        assert front.native_address is not None
        wire = Wire(front.native_address)
        await wire.open()
        stack.callback(wire.close)
        url, authority = f"penstock://{wire.address}", None
        if shown is not None:
            url, authority = f"penstocks://{wire.address}", shown.authority
        client = await stack.enter_async_context(penstock.connect(url, ca=authority))
        yield Readable(opened["node-1"], opened, front, store, client, wire)
