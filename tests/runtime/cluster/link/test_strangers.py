"""Who does not know the cluster's secret: neither a front end nor a node is taken in by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from penstock.cluster.layout.entries import NodeEntry
from penstock.config.address import Address
from penstock.model.errors import PenstockError
from penstock.runtime.cluster.reachability import check_reachability
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.runtime.processes.listening import StrangerError
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.handshake import Challenge, ClientHandshake, HandshakeError
from penstock.wire.messages import PROTOCOL_VERSION, SERVICE, Hello, Ping, encode_message
from tests.runtime.cluster.link.harness import SECRET, address_of, small_cluster
from tests.runtime.engine.linked_node import ask
from tests.runtime.harness import async_test
from tests.runtime.relay import relay


@async_test
async def test_who_knows_the_secret_is_let_in(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one",)) as cluster:
        link = TcpLink(address_of(cluster.nodes["one"]), asyncio.get_running_loop(), secret=SECRET)
        link.start()
        await link.found()
        assert (await ask(link, Ping())).answer is not None
        await link.close()


@async_test
@pytest.mark.parametrize("secret", [None, b"something that others know"])
async def test_a_stranger_is_not_let_in(tmp_path: Path, secret: bytes | None) -> None:
    async with small_cluster(tmp_path, ("one",)) as cluster:
        link = TcpLink(address_of(cluster.nodes["one"]), asyncio.get_running_loop(), secret=secret)
        with pytest.raises((PenstockError, HandshakeError, OSError)):
            await link._connect()
        assert not link.connected
        await link.close()


@async_test
async def test_who_passes_greetings_on_gets_no_connection(tmp_path: Path) -> None:
    """At an address that a node had before, or that somebody wrote into the layout: it could read and change all that is said."""
    async with small_cluster(tmp_path, ("one",)) as cluster:
        address = address_of(cluster.nodes["one"])
        async with relay(str(address)) as place:
            link = TcpLink(Address.parse(place, default_port=0), asyncio.get_running_loop(), secret=SECRET)
            with pytest.raises(HandshakeError):
                await link._connect()
            await link.close()
            told = NodeEntry(node="one", native=place, peers=place, started_ms=1)
            with pytest.raises(StrangerError):
                await check_reachability([told], SECRET, None)


@async_test
async def test_nothing_is_parsed_of_who_has_not_proven_anything(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one",)) as cluster:
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.nodes["one"].server.port)
        hello = encode_message(Hello([PROTOCOL_VERSION], "stranger"))
        writer.write(b"".join(encode_frame(1, hello)))
        frames = FrameReader().feed(await reader.read(1 << 16))
        assert len(frames) == 1  # the challenge
        try:
            rest = await reader.read(1 << 16)
        except ConnectionError:  # cut off is as good as closed
            rest = b""
        assert not rest
        writer.close()


@async_test
async def test_a_node_that_does_not_know_the_secret_is_not_greeted() -> None:
    greeted = asyncio.Event()

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(encode_frame(0, _encoded_challenge())))
        await reader.read(1 << 16)
        wrong = ClientHandshake(b"x" * 16, SERVICE, bytes(32)).prove(_encoded_challenge())
        writer.write(b"".join(encode_frame(0, wrong)))
        if await reader.read(1 << 16):
            greeted.set()
        writer.close()

    server = await asyncio.start_server(impostor, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    link = TcpLink(Address("127.0.0.1", port), asyncio.get_running_loop(), secret=SECRET)
    with pytest.raises(HandshakeError):
        await link._connect()
    assert not greeted.is_set()
    await link.close()
    server.close()


def _encoded_challenge() -> bytes:
    return msgspec.msgpack.encode(Challenge(bytes(32)))
