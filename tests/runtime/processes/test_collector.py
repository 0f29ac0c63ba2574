"""Collections stay short however much a process remembers, and closed connections need none."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.runtime.embedded import running_server
from penstock.runtime.local_cluster.certificates import ThrowAwayAuthority
from penstock.runtime.processes import collector
from penstock.wire.credentials import LINK_KEY
from penstock.wire.messages import PROTOCOL_VERSION, Hello, Ping, Receive, Welcome
from tests.runtime.harness import RawClient, async_test, small_config, until

_REQUEST = (
    b"POST / HTTP/1.1\r\nHost: here\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n"
    b"Content-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n\r\n{}"
)
_OF_CONNECTIONS = {
    *("Connection", "ClientSession", "HttpConnection", "Exchanges", "RequestReader"),
    *("TCPTransport", "SSLProtocol", "SSLObject"),
}


@pytest.fixture
def short_collections() -> Iterator[None]:
    thresholds = gc.get_threshold()
    collector.begin()
    yield
    collector.end()
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("short_collections")
def test_what_survives_is_not_looked_at_again() -> None:
    kept = []
    looked_at = 0
    for number in range(300_000):
        kept.append([number])
        if number % 5_000 == 0:
            looked_at = max(looked_at, len(gc.get_objects()))
    assert looked_at <= 6 * collector.THRESHOLDS[0]
    assert gc.get_freeze_count() >= 200_000
    before = gc.get_freeze_count()
    kept.clear()
    assert gc.get_freeze_count() <= before - 200_000, "what is frozen goes when nothing refers to it"


@pytest.mark.usefixtures("short_collections")
def test_a_small_process_looks_at_everything_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    gc.freeze()
    del cycle
    monkeypatch.setattr(collector, "FEW_BLOCKS", 0)
    assert not collector.thaw()
    monkeypatch.setattr(collector, "FEW_BLOCKS", 1 << 60)
    frozen = gc.get_freeze_count()
    assert collector.thaw()
    assert gc.get_freeze_count() < frozen


@contextmanager
def left_behind() -> Iterator[Counter[str]]:
    """What only a collection finds of what happens within, by class."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found.update(type(one).__qualname__ for one in gc.garbage)
    finally:
        gc.garbage.clear()
        gc.set_debug(0)
        gc.enable()


async def receive_and_leave(port: int, context: ssl.SSLContext | None) -> None:
    client = RawClient(*await asyncio.open_connection("127.0.0.1", port, ssl=context))
    assert isinstance(await client.ask(Hello([PROTOCOL_VERSION], "test", LINK_KEY)), Welcome)
    queue_id = await client.create_queue("orders")
    await client.send(queue_id, [b"x"])
    await client.ask(Receive(queue_id))
    client.write(Receive(queue_id, wait_ms=60_000))
    await client.ask(Ping())
    client.close()
    await client.writer.wait_closed()


async def ask_and_leave(port: int, context: ssl.SSLContext | None) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(_REQUEST)
    assert await reader.read(1_000)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("secure", [False, True])
@async_test
async def test_closed_connections_leave_nothing_to_the_collector(tmp_path: Path, secure: bool) -> None:
    options: dict[str, str] = {}
    context = None
    if secure:
        files = ThrowAwayAuthority(tmp_path / "authority").files("server")
        for door in ("sqs", "native"):
            options[f"{door}_tls_certificate"] = str(files.certificate)
            options[f"{door}_tls_key"] = str(files.key)
        context = ssl.create_default_context(cafile=str(files.authority))
    async with running_server(tmp_path / "data", small_config(**options)) as server:
        native, sqs = server.port, int(server.sqs_url.rsplit(":", 1)[1].strip("/"))
        assert server.broker._server is not None
        assert server.broker.sqs_server is not None
        places = server.broker._server.connections, server.broker.sqs_server._server.connections
        await receive_and_leave(native, context)
        await ask_and_leave(sqs, context)
        await until(lambda: not any(places))
        with left_behind() as found:
            for _ in range(10):
                await receive_and_leave(native, context)
                await ask_and_leave(sqs, context)
            await until(lambda: not any(places))
        assert not {name for name in found if name in _OF_CONNECTIONS}, found
