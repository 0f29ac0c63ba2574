"""Connections that break at the worst moment: a write is done at most once, and nobody is told what is not known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.metadata.store.etcd import EtcdStore, open_etcd_store
from penstock.metadata.store.interface import ABSENT, StoreUnavailableError, VersionConflictError
from tests.etcd_servers import EtcdServers
from tests.runtime.harness import async_test


class Wire:
    """Stands between a store and etcd; cuts the connection before or after what is sent next has an answer."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self.cut: list[str] = []
        """What to do with the next questions: "before" etcd sees one, or "after" it has answered."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        their_reader, their_writer = await asyncio.open_connection(*self._target)
        answers = asyncio.ensure_future(_pass_on(their_reader, writer))
        try:
            while question := await reader.read(1 << 20):
                cut = self.cut.pop(0) if self.cut else ""
                if cut == "before":
                    break
                if cut == "after":
                    answers.cancel()
                    await asyncio.wait({answers})
                    their_writer.write(question)
                    await their_reader.read(1)
                    break
                their_writer.write(question)
        finally:
            answers.cancel()
            await asyncio.wait({answers})
            their_writer.close()
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 20):
        writer.write(data)


@asynccontextmanager
async def wired(etcd: EtcdServers) -> AsyncIterator[tuple[EtcdStore, EtcdStore, Wire]]:
    """A store over the wire, another beside it on the same keys, and the wire."""
    member = etcd.members[0].member
    wire = Wire(member.host, member.client_port)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    beside = etcd.url(options="timeout=2")
    port = server.sockets[0].getsockname()[1]
    store = await open_etcd_store(beside.replace(member.address, f"127.0.0.1:{port}"))
    straight = await open_etcd_store(beside)
    try:
        yield store, straight, wire
    finally:
        await store.close()
        await straight.close()
        server.close()
        await server.wait_closed()


@async_test
async def test_a_creation_whose_answer_is_lost_is_not_tried_again(etcd: EtcdServers) -> None:
    async with wired(etcd) as (store, straight, wire):
        for moment, there in (("before", False), ("after", True)):
            wire.cut = [moment]
            with pytest.raises(StoreUnavailableError, match="did not confirm the change"):
                await store.put(moment, b"x", ABSENT)
            assert (await straight.get(moment) is not None) == there
            wire.cut = [moment]
            with pytest.raises(StoreUnavailableError, match="did not confirm the change"):
                await store.put(f"blindly {moment}", b"x")
            assert (await straight.get(f"blindly {moment}") is not None) == there


@async_test
async def test_a_conditional_write_that_did_not_arrive_is_tried_again(etcd: EtcdServers) -> None:
    async with wired(etcd) as (store, straight, wire):
        first = await store.put("a", b"1", ABSENT)
        wire.cut = ["before"]
        second = await store.put("a", b"2", first)
        assert await straight.get("a") == ("a", b"2", second)
        wire.cut = ["before"]
        await store.delete("a", second)
        assert await straight.get("a") is None


@async_test
async def test_a_conditional_write_whose_answer_is_lost_is_never_called_a_conflict(etcd: EtcdServers) -> None:
    async with wired(etcd) as (store, straight, wire):
        first = await store.put("a", b"1", ABSENT)
        wire.cut = ["after"]
        with pytest.raises(StoreUnavailableError, match="did not confirm the change"):
            await store.put("a", b"2", first)
        entry = await straight.get("a")
        assert entry is not None
        assert entry.value == b"2"
        with pytest.raises(VersionConflictError):
            await store.put("a", b"3", first)


@async_test
async def test_what_does_no_harm_is_asked_again(etcd: EtcdServers) -> None:
    async with wired(etcd) as (store, _, wire):
        version = await store.put("a", b"1")
        for moment in ("before", "after"):
            wire.cut = [moment, moment]
            assert await store.get("a") == ("a", b"1", version)
            wire.cut = [moment]
            lease = await store.grant(60)
            wire.cut = [moment]
            assert await store.renew(lease)
            wire.cut = [moment]
            await store.revoke(lease)
            assert not await store.renew(lease)


@async_test
async def test_something_that_is_no_etcd_is_called_so() -> None:
    async def check(said: bytes, explained: str) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if await reader.read(1 << 16):
                writer.write(said)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(StoreUnavailableError, match=explained):
            await open_etcd_store(f"etcd://127.0.0.1:{port}?timeout=1")
        server.close()
        await server.wait_closed()

    await asyncio.gather(
        check(b"SSH-2.0-OpenSSH\r\n\r\n", "is not etcd"),
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "is not etcd"),
        check(b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found", "JSON gateway"),
        check(b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n", "HTTP status 503"),
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "closed in the middle"),
        check(b"", "connection was closed"),
    )
