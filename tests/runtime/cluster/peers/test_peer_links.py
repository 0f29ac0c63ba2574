"""Streams between nodes: one for each pair, dialled again when they break, and closed to strangers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.runtime.cluster.peers import peer_connection, peer_links
from penstock.runtime.cluster.peers.peer_links import PeerLinks
from penstock.runtime.cluster.streams import dial
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.local_cluster.certificates import ThrowAwayAuthority
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.strangers import STRANGERS_AT_ONCE
from tests.runtime.relay import relay

SECRET = b"a secret that both of them know."
WAIT_SECONDS = 100


class Heard:
    """What a node hears; somebody may wait for it."""

    def __init__(self) -> None:
        self.peers: list[str] = []
        self.lost: list[str] = []
        self.frames: list[tuple[str, bytes]] = []
        self.verdict: str | None = None
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def peer_connected(self, node: str) -> None:
        self.peers.append(node)
        self._tell()

    def peer_disconnected(self, node: str) -> None:
        self.lost.append(node)
        self._tell()

    def peer_frames(self, node: str, frames: Sequence[Frame]) -> str | None:
        self.frames += [(node, bytes(frame.body)) for frame in frames]
        self._tell()
        return self.verdict

    def _tell(self) -> None:
        task = asyncio.create_task(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._changed:
            await self._changed.wait_for(holds)


@asynccontextmanager
async def node(
    name: str,
    secret: bytes = SECRET,
    tls: ClusterTls | None = None,
) -> AsyncIterator[tuple[PeerLinks, Heard, str]]:
    """A node's links, what it hears, and where it listens."""
    heard = Heard()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    place = f"127.0.0.1:{listener.getsockname()[1]}"
    links = PeerLinks(name, secret, heard, place, tls)
    await links.listen(listener)
    try:
        yield links, heard, place
    finally:
        await links.close()


class LogWatch(logging.Handler):
    """Waits for a line in the log."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._said = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._text in record.getMessage():
            self._said.set()

    async def said(self) -> None:
        log = logging.getLogger("penstock.runtime.cluster.peers.peer_links")
        log.addHandler(self)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._said.wait()
        finally:
            log.removeHandler(self)


def test_strangers_who_say_nothing_are_few_and_keep_no_node_out() -> None:
    async def scenario() -> None:
        async with node("a") as (a, heard_a, place_a), node("b") as (b, _, place_b):
            host, port = place_a.split(":")
            silent = [await asyncio.open_connection(host, int(port)) for _ in range(STRANGERS_AT_ONCE + 10)]
            places = {"a": place_a, "b": place_b}
            b.know(places)
            a.know(places)
            await heard_a.until(lambda: heard_a.peers == ["b"])
            for reader, _ in silent[:10]:
                with contextlib.suppress(ConnectionResetError):
                    await asyncio.wait_for(reader.read(), peer_connection.HANDSHAKE_SECONDS / 2)
            for _, writer in silent:
                writer.close()

    asyncio.run(scenario())


def test_what_passes_greetings_on_is_no_node() -> None:
    """Who has the address that a node had before, and does not know the secret."""

    async def scenario() -> None:
        async with (
            node("a") as (a, heard_a, place_a),
            node("b") as (_, heard_b, place_b),
            relay(place_b) as old_place_b,
        ):
            refused = LogWatch("the address belonged to another process")
            a.know({"a": place_a, "b": old_place_b})
            await refused.said()
            assert not heard_a.peers
            assert not heard_b.peers
            a.know({"a": place_a, "b": place_b})
            await heard_a.until(lambda: heard_a.peers == ["b"])

    asyncio.run(scenario())


def test_two_nodes_have_one_stream_and_large_frames_pass() -> None:
    async def scenario() -> None:
        async with node("a") as (a, heard_a, place_a), node("b") as (b, heard_b, place_b):
            places = {"a": place_a, "b": place_b}
            a.know(places)
            b.know(places)
            await heard_a.until(lambda: heard_a.peers == ["b"])
            await heard_b.until(lambda: heard_b.peers == ["a"])
            large = bytes(range(256)) * 8_192
            a.write("b", encode_frame(0, b"head", [large]))
            b.write("a", encode_frame(0, b"head", [b"small"]))
            await heard_b.until(lambda: heard_b.frames == [("a", large)])
            await heard_a.until(lambda: heard_a.frames == [("b", b"small")])
            assert (a.connected, b.connected) == (["b"], ["a"])

    asyncio.run(scenario())


def test_a_stream_that_breaks_is_made_anew() -> None:
    async def scenario() -> None:
        async with node("a") as (a, heard_a, place_a), node("b") as (_b, heard_b, place_b):
            a.know({"a": place_a, "b": place_b})
            await heard_b.until(lambda: heard_b.peers == ["a"])
            heard_b.verdict = "it is said that this is no message"
            a.write("b", encode_frame(0, b"head", [b"x"]))
            await heard_a.until(lambda: heard_a.lost == ["b"])
            heard_b.verdict = None
            await heard_a.until(lambda: heard_a.peers == ["b", "b"])
            await heard_b.until(lambda: heard_b.peers == ["a", "a"])
            assert heard_b.lost == ["a"]

    asyncio.run(scenario())


def test_a_stranger_is_cut_off_and_never_heard() -> None:
    async def scenario() -> None:
        async with (
            node("a", b"another secret, not that one....") as (a, heard_a, _),
            node("b") as (_b, heard_b, place_b),
        ):
            a.know({"b": place_b})
            await LogWatch("refused a connection of a node").said()
            assert not heard_a.peers
            assert not heard_b.peers

    asyncio.run(scenario())


def test_bytes_that_are_no_handshake_are_not_read_on() -> None:
    async def scenario() -> None:
        async with node("b") as (_, heard, place):
            host, port = place.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"\xff" * 100_000)
            async with asyncio.timeout(WAIT_SECONDS):
                try:
                    while await reader.read(4096):
                        pass
                except ConnectionError:
                    pass
            writer.close()
            assert not heard.peers

    asyncio.run(scenario())


def test_an_address_that_is_another_nodes_now_is_not_taken_for_the_old_one() -> None:
    async def scenario() -> None:
        async with node("a") as (a, heard_a, _), node("c") as (_, _, place_c):
            a.know({"b": place_c})
            await LogWatch("cannot reach node").said()
            assert not heard_a.peers

    asyncio.run(scenario())


def test_streams_may_be_encrypted_with_certificates_on_both_sides(tmp_path: Path) -> None:
    authority = ThrowAwayAuthority(tmp_path)
    tls = {name: ClusterTls(*authority.files(name)) for name in "ab"}

    async def scenario() -> None:
        async with (
            node("a", SECRET, tls["a"]) as (a, heard_a, _),
            node("b", SECRET, tls["b"]) as (b, heard_b, place_b),
        ):
            a.know({"b": place_b})
            await heard_b.until(lambda: heard_b.peers == ["a"])
            a.write("b", encode_frame(0, b"head", [b"x" * 100_000]))
            await heard_b.until(lambda: heard_b.frames == [("a", b"x" * 100_000)])
            b.write("a", encode_frame(0, b"head", [b"y"]))
            await heard_a.until(lambda: heard_a.frames == [("b", b"y")])

    asyncio.run(scenario())


def test_a_node_with_a_certificate_of_somebody_else_is_refused(tmp_path: Path) -> None:
    own = ClusterTls(*ThrowAwayAuthority(tmp_path / "own").files("b"))
    strange = ClusterTls(*ThrowAwayAuthority(tmp_path / "strange").files("a"))

    async def scenario() -> None:
        async with (
            node("a", SECRET, strange) as (a, heard_a, _),
            node("b", SECRET, own) as (_, heard_b, place_b),
        ):
            refused = LogWatch("its certificate is not signed by the cluster's authority")
            a.know({"b": place_b})
            await refused.said()
            assert not heard_a.peers
            assert not heard_b.peers

    asyncio.run(scenario())


def test_a_stream_that_replaces_an_older_one_is_kept() -> None:
    async def scenario() -> None:
        async with node("a") as (a, heard_a, _), node("b") as (b, heard_b, place_b):
            a.know({"b": place_b})
            await heard_b.until(lambda: heard_b.peers == ["a"])
            host, _, port = place_b.rpartition(":")
            await dial(lambda: a._new("b", place_b), host, int(port), None)
            await heard_a.until(lambda: heard_a.peers == ["b", "b"])
            await heard_b.until(lambda: heard_b.peers == ["a", "a"])
            assert not a._wanted["b"].is_set(), "else it would be dialled again, and again, for ever"
            b.write("a", encode_frame(0, b"head", [b"over the new one"]))
            await heard_a.until(lambda: heard_a.frames == [("b", b"over the new one")])

    asyncio.run(scenario())


def test_a_dial_that_takes_too_long_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_links, "DIAL_SECONDS", 0.1)
    monkeypatch.setattr(peer_connection, "HANDSHAKE_SECONDS", 10 * WAIT_SECONDS)

    async def scenario() -> None:
        ended = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionResetError):
                while await reader.read(1_000):
                    pass
            ended.set()
            writer.close()

        mute = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        async with node("a") as (a, _, _), mute:
            a.know({"b": f"127.0.0.1:{mute.sockets[0].getsockname()[1]}"})
            async with asyncio.timeout(WAIT_SECONDS):
                await ended.wait()

    asyncio.run(scenario())
