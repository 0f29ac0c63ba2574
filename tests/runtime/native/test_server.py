"""The server against clients that are broken, hostile, slow or too many."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.runtime.embedded import running_server
from penstock.wire.frames import encode_frame
from penstock.wire.messages import (
    Count,
    DescribeQueue,
    Done,
    Failed,
    Peek,
    Peeked,
    Ping,
    Purge,
    QueueDescription,
    Receive,
    Send,
    SendResult,
    encode_message,
)
from tests.runtime.harness import RawClient, async_test, small_config, until


def ping_frame(request_id: int = 5) -> bytes:
    return b"".join(encode_frame(request_id, encode_message(Ping())))


def damaged_frame() -> bytes:
    frame = bytearray(ping_frame())
    frame[-1] ^= 1
    return bytes(frame)


@pytest.mark.parametrize(
    ("garbage", "says"),
    [
        (b"GET / HTTP/1.1\r\nHost: penstock\r\n\r\n", "a frame of"),
        (bytes(64), "a frame of 0 bytes"),
        ((limits.FRAME_BYTES + 1).to_bytes(4, "little"), f"a frame of {limits.FRAME_BYTES + 1} bytes"),
        (damaged_frame(), "the checksum of a frame does not match"),
        (b"\xff" * 200_000, "a frame of 4294967295 bytes"),
    ],
    ids=["http", "zeros", "oversize", "checksum", "ones"],
)
@pytest.mark.parametrize("greeted", [False, True])
def test_garbage_gets_one_clear_error_and_a_closed_connection(
    garbage: bytes, says: str, greeted: bool, tmp_path: Path
) -> None:
    @async_test
    async def scenario() -> None:
        async with running_server(tmp_path, small_config()) as server:
            bystander = await RawClient.connect(server.port)
            client = await RawClient.connect(server.port, hello=greeted)
            client.writer.write(garbage)
            frame = await client.frame()
            assert frame is not None
            assert frame.request_id == 0
            client._arrived.insert(0, frame)
            answer = await client.answer()
            assert isinstance(answer, Failed)
            assert answer.code == ErrorCode.BAD_FRAME
            assert says in answer.message
            assert await client.frame() is None
            assert await bystander.ask(Ping()) == Done()

    scenario()


@async_test
async def test_a_head_that_is_no_request_is_answered_and_the_connection_lives(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        client = await RawClient.connect(server.port)
        client.writer.writelines(encode_frame(9, b"\xc1 not msgpack"))
        answer = await client.answer()
        assert isinstance(answer, Failed)
        assert answer.code in (ErrorCode.UNKNOWN_REQUEST, ErrorCode.BAD_REQUEST)
        assert await client.ask(Ping()) == Done()


@async_test
async def test_requests_before_hello_are_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        client = await RawClient.connect(server.port, hello=False)
        answer = await client.ask(Ping())
        assert isinstance(answer, Failed)
        assert "Hello" in answer.message


@async_test
async def test_a_connection_that_says_nothing_is_closed(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(hello_timeout_ms=50)) as server:
        client = await RawClient.connect(server.port, hello=False)
        answer = await client.answer()
        assert isinstance(answer, Failed)
        assert "no hello arrived within 0.05 s" in answer.message
        assert await client.frame() is None


@async_test
async def test_half_a_frame_is_no_hello(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(hello_timeout_ms=50)) as server:
        client = await RawClient.connect(server.port, hello=False)
        client.writer.write(ping_frame()[:7])
        assert isinstance(await client.answer(), Failed)
        assert await client.frame() is None


@async_test
async def test_an_idle_connection_outlives_the_hello_timeout(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(hello_timeout_ms=50)) as server:
        idle = await RawClient.connect(server.port)
        silent = await RawClient.connect(server.port, hello=False)
        assert isinstance(await silent.answer(), Failed)  # the timeout has passed for both
        assert await idle.ask(Ping()) == Done()


@async_test
async def test_one_connection_too_many_is_told_so(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(max_connections=2)) as server:
        first = await RawClient.connect(server.port)
        second = await RawClient.connect(server.port)
        third = await RawClient.connect(server.port, hello=False)
        answer = await third.answer()
        assert isinstance(answer, Failed)
        assert answer.code == ErrorCode.LIMIT_REACHED
        assert "takes 2 connections" in answer.message
        assert await third.frame() is None
        assert await second.ask(Ping()) == Done()
        first.writer.write(b"\xff" * 8)  # makes the server close it, so that its place is free for certain
        assert isinstance(await first.answer(), Failed)
        assert await first.frame() is None
        assert await (await RawClient.connect(server.port)).ask(Ping()) == Done()


@async_test
async def test_frames_may_arrive_in_any_pieces(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        client = await RawClient.connect(server.port)
        for byte in ping_frame():
            client.writer.write(bytes([byte]))
            await client.writer.drain()
        assert await client.answer() == Done()
        client.writer.write(b"".join(ping_frame(number) for number in range(1, 1001)))
        for _ in range(1000):
            assert await client.answer() == Done()


@async_test
async def test_a_client_that_does_not_read_is_not_read_from_and_loses_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(write_buffer_bytes=limits.MEBIBYTE)) as server:
        client = await RawClient.connect(server.port)
        queue_id = await client.create_queue("large")
        await client.send(queue_id, [b"x" * 900_000])
        # Far more than the sockets between the two hold, and within the bound of the server.
        for _ in range(40):
            client.write(Peek(queue_id))
        connections = server.broker._server.connections
        (number,) = connections
        await until(lambda: connections[number].has_unread_answers)
        assert connections[number].socket.unread_bytes > limits.MEBIBYTE
        late = client.write(Ping())
        for _ in range(40):
            assert isinstance(await client.answer(), Peeked)
        frame = await client.frame()
        assert frame is not None
        assert frame.request_id == late


@async_test
async def test_a_client_that_asks_without_end_and_never_reads_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.wire.client_session.STALLED_SECONDS", 0.01)
    async with running_server(tmp_path, small_config(write_buffer_bytes=64 * limits.KIBIBYTE)) as server:
        bystander = await RawClient.connect(server.port)
        client = await RawClient.connect(server.port)
        queue_id = await client.create_queue("large")
        await client.send(queue_id, [b"x" * 900_000])
        connections = server.broker._server.connections
        assert len(connections) == 2
        for _ in range(200):
            client.write(Peek(queue_id))
        await until(lambda: len(connections) == 1)
        assert await bystander.ask(Ping()) == Done()


@async_test
async def test_a_client_that_is_behind_but_reads_is_not_disconnected(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(write_buffer_bytes=64 * limits.KIBIBYTE)) as server:
        client = await RawClient.connect(server.port)
        queue_id = await client.create_queue("large")
        await client.send(queue_id, [b"x" * 900_000])
        for _ in range(200):
            client.write(Peek(queue_id))
        for _ in range(200):
            assert isinstance(await client.answer(), Peeked)


@async_test
async def test_large_requests_that_never_end_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.wire.client_session.PARTIAL_FRAME_BYTES", limits.MEBIBYTE)
    async with running_server(tmp_path, small_config()) as server:
        client = await RawClient.connect(server.port)
        client.writer.write((8 * limits.MEBIBYTE).to_bytes(4, "little") + bytes(2 * limits.MEBIBYTE))
        answer = await client.answer()
        assert isinstance(answer, Failed)
        assert answer.code == ErrorCode.OVERLOADED
        assert server.broker._server.sessions.partial_bytes <= 2 * limits.MEBIBYTE
        other = await RawClient.connect(server.port)
        assert await other.ask(Ping()) == Done()
        await until(lambda: server.broker._server.sessions.partial_bytes == 0)


@async_test
async def test_a_receiver_that_hangs_up_no_longer_waits(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        observer = await RawClient.connect(server.port)
        queue_id = await observer.create_queue("orders")
        receiver = await RawClient.connect(server.port)
        receiver.write(Receive(queue_id, wait_ms=60_000))
        assert await waiting_receivers(observer, 1) == 1
        receiver.close()
        assert await waiting_receivers(observer, 0) == 0


async def waiting_receivers(client: RawClient, until: int) -> int:
    while True:
        described = await client.ask(DescribeQueue("orders"))
        assert isinstance(described, QueueDescription)
        if described.statistics.waiting_receivers == until:
            return until


@async_test
async def test_a_congested_node_is_not_given_more_and_goes_on_by_itself(tmp_path: Path) -> None:
    config = small_config(max_unflushed_bytes=1)  # congested from the first unflushed byte on
    async with running_server(tmp_path, config) as server:
        clients = [await RawClient.connect(server.port) for _ in range(4)]
        queue_id = await clients[0].create_queue("orders")

        async def send_all(client: RawClient) -> None:
            for _ in range(50):
                assert isinstance(await client.send(queue_id, [b"x" * 1000] * 10), SendResult)

        await asyncio.gather(*map(send_all, clients))
        assert await clients[0].ask(Purge(queue_id)) == Count(2000)


@async_test
async def test_requests_that_arrive_together_share_flushes(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        client = await RawClient.connect(server.port)
        queue_id = await client.create_queue("orders")
        before = server.broker._node._store.statistics().flushes_total
        for _ in range(200):
            client.write(Send(queue_id), encode_parts([b"together"]))
        for _ in range(200):
            assert isinstance(await client.answer(), SendResult)
        assert server.broker._node._store.statistics().flushes_total - before < 20
