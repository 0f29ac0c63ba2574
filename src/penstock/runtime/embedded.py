"""A whole server inside a running event loop: for tests, notebooks, and programs with their own queue.

    async with running_server(directory) as server:
        async with penstock.connect(server.url) as client: ...

It has the same parts as `penstock serve`, on a free port of the loopback address; leaving the block stops it cleanly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from penstock.config.address import Address
from penstock.config.serve import ServeConfig
from penstock.runtime.processes.broker import Broker, open_broker
from penstock.runtime.processes.listening import SettingError

ANY_PORT = Address("127.0.0.1", 0)


@asynccontextmanager
async def running_server(
    directory: str | Path, config: ServeConfig | None = None
) -> AsyncIterator[EmbeddedServer]:
    """A server on `directory` for as long as the block runs; raises what stopped it, if something did."""
    chosen = config or ServeConfig(listen=ANY_PORT, sqs_listen=ANY_PORT, monitoring_listen=None)
    broker = await open_broker(replace(chosen, data_directory=str(directory)))
    try:
        yield EmbeddedServer(broker)
    finally:
        await broker.close()
    if broker.failure is not None:
        raise broker.failure


class EmbeddedServer:
    """The addresses of a running server, and its start report."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self.broker.address.port

    @property
    def url(self) -> str:
        """The URL for `penstock.connect`."""
        return self.broker.url

    @property
    def sqs_url(self) -> str:
        """The endpoint for AWS SDKs."""
        if self.broker.sqs_server is None:
            raise SettingError("SQS is turned off (sqs.listen), so there is no endpoint for SDKs")
        return self.broker.sqs_server.url
