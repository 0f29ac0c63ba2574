"""The TCP link over a real server, in this process and in one that is killed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.config import Address
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.embedded import running_server
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.wire.backoff import Pauses
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.messages import (
    PROTOCOL_VERSION,
    Done,
    Failed,
    Hello,
    Ping,
    Receive,
    Send,
    Welcome,
    decode_request,
    encode_message,
)
from tests.ports import free_port
from tests.process.server import ServerProcess
from tests.runtime.engine.linked_node import ask, asked, create_queue, exercise
from tests.runtime.harness import async_test, small_config


@asynccontextmanager
async def linked(port: int, **options: int) -> AsyncIterator[TcpLink]:
    link = TcpLink(Address("127.0.0.1", port), asyncio.get_running_loop(), **options)  # type: ignore[arg-type]  # as the test names them
    link.start()
    try:
        yield link
    finally:
        await link.close()


@async_test
async def test_the_link_asks_and_is_answered(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server, linked(server.port) as link:
        await link.found()
        await exercise(link)


@async_test
async def test_too_much_outstanding_is_refused_and_one_large_request_is_not(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, small_config()) as server,
        linked(server.port, outstanding_bytes=100_000) as link,
    ):
        await link.found()
        queue_id = await create_queue(link, "orders")
        body = encode_parts([bytes(150_000)])
        _, first = asked(link, Send(queue_id), body)
        _, second = asked(link, Send(queue_id), body)
        with pytest.raises(PenstockError) as caught:
            await second
        assert caught.value.code is ErrorCode.OVERLOADED
        await first
        await ask(link, Send(queue_id), body)


@async_test
async def test_a_back_end_that_is_not_there_is_unreachable_and_found_when_it_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with caplog.at_level(logging.INFO, "penstock.runtime.engine"):
        async with linked(port) as link:
            with pytest.raises(PenstockError) as caught:
                await ask(link, Ping())
            assert caught.value.code is ErrorCode.UNREACHABLE
            async with running_server(tmp_path, small_config(listen=Address("127.0.0.1", port))):
                await link.found()
                assert (await ask(link, Ping())).answer == Done()
    assert f"connected to the node at 127.0.0.1:{port}" in caplog.text


@async_test
async def test_a_sign_of_life_ends_the_pause_between_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.runtime.engine.tcp_link.NODE_LINK", Pauses(3_600.0, 3_600.0))
    port, failed = free_port(), asyncio.Event()
    link = TcpLink(Address("127.0.0.1", port), asyncio.get_running_loop())
    monkeypatch.setattr(link, "_failed_to_connect", lambda reason: failed.set())
    link.start()
    try:
        await failed.wait()
        async with running_server(tmp_path, small_config(listen=Address("127.0.0.1", port))):
            link.look_now()
            await link.found()
    finally:
        await link.close()


@async_test
async def test_what_is_no_penstock_server_is_not_taken_for_one() -> None:
    met = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await reader.read()
        writer.close()
        met.set()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server, linked(server.sockets[0].getsockname()[1]) as link:
        await met.wait()
        assert not link.connected


@async_test
async def test_a_back_end_that_is_killed_fails_what_waits_and_is_found_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ServerProcess(tmp_path)
    await server.start()
    try:
        with caplog.at_level(logging.INFO, "penstock.runtime.engine"):
            async with linked(server.port) as link:
                await link.found()
                queue_id = await create_queue(link, "orders")
                await ask(link, Send(queue_id), encode_parts([b"kept"]))
                _, waiting = asked(link, Receive(await create_queue(link, "empty"), 1, wait_ms=60_000))
                await server.kill()
                with pytest.raises(PenstockError) as caught:
                    await waiting
                assert caught.value.code is ErrorCode.UNREACHABLE
                assert not link.connected
                await server.start()
                await link.found()
                assert b"kept" in bytes((await ask(link, Receive(queue_id, 1))).body)
        assert "lost the connection to the node at" in caplog.text
        assert caplog.text.count("connected to the node at") == 2
    finally:
        await server.stop()


@async_test
async def test_a_back_end_that_welcomes_and_refuses_in_the_same_bytes_is_connected_to_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection ends between the welcome and the moment in which the link counts on it."""
    monkeypatch.setattr("penstock.runtime.engine.tcp_link.NODE_LINK", Pauses(0.001, 2.0))
    visits = 0

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits
        visits += 1
        frames = FrameReader()
        while data := await reader.read(65_536):
            for frame in frames.feed(data):
                hello = isinstance(decode_request(frame.head), Hello)
                answer = Welcome(PROTOCOL_VERSION, "server", "node", 1) if hello else Done()
                writer.write(b"".join(encode_frame(frame.request_id, encode_message(answer))))
            if visits == 1:
                refusal = Failed(ErrorCode.UNAUTHENTICATED, "its user is gone")
                writer.write(b"".join(encode_frame(0, encode_message(refusal))))
                break
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server, linked(server.sockets[0].getsockname()[1]) as link:
        await link.found()
        assert (await ask(link, Ping())).answer == Done()
        assert visits == 2
