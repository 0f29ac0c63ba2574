"""Nobody keeps a connection by being slow, and nobody loses one while the server works for it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from tests.runtime.harness import until
from tests.runtime.http.harness import HeldRequests, answer, echo, on_both_loops, request_bytes, serving

HEAD = "POST / HTTP/1.1\r\nHost: h\r\n"
MEBIBYTE = 1024 * 1024
LARGE = b"x" * (8 * MEBIBYTE)


@on_both_loops
async def test_headers_that_do_not_come_are_not_waited_for() -> None:
    async with serving(echo, head_seconds=10) as served:
        client = await served.client()
        client.send("POST / HT")
        connection = await served.connection()
        await until(lambda: connection.reader.arriving)
        served.pass_time(9.9)
        client.send("TP/1.1\r\nHost: h\r\nX: ")  # whoever sends a little now and then is late all the same
        served.pass_time(0.2)
        got = await client.answer()
        assert (got.status, got.header("connection")) == (408, "close")
        assert b"headers did not arrive within 10 s" in got.body
        assert await client.ended() == b""


@on_both_loops
async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with serving(echo, head_seconds=10, request_seconds=20) as served:
        client = await served.client()
        client.send(f"{HEAD}Content-Length: 10\r\n\r\nabc")
        connection = await served.connection()
        await until(lambda: connection.reader.missing_bytes == 7)
        served.pass_time(10)
        served.pass_time(9)
        client.send("def")
        await until(lambda: connection.reader.missing_bytes == 4)
        served.pass_time(1)
        got = await client.answer()
        assert got.status == 408
        assert b"request did not arrive within 20 s" in got.body


@on_both_loops
async def test_a_request_that_is_late_is_refused_in_its_turn() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(request_bytes("/0") + b"POST")
        visit = await held.visit(0)
        served.pass_time(10)
        visit.reply(answer("zero"))
        assert [got.status for got in await client.answers(2)] == [200, 408]


@on_both_loops
async def test_every_request_of_a_pipeline_has_a_time_of_its_own() -> None:
    """Requests that straddle two reads keep something arriving at all times."""
    async with serving(echo, head_seconds=10, request_seconds=20) as served:
        client = await served.client()
        data = request_bytes("/", b"body")
        client.send(data[:20])
        connection = await served.connection()
        for _ in range(8):
            await until(lambda: connection.reader.arriving)
            served.pass_time(6)
            client.send(data[20:] + data[:20])
            assert (await client.answer()).status == 200
        await until(lambda: connection.reader.arriving)
        served.pass_time(10)
        assert (await client.answer()).status == 408


@on_both_loops
async def test_an_idle_connection_is_closed() -> None:
    async with serving(echo, idle_seconds=60) as served:
        client = await served.client()
        await served.connection()
        served.pass_time(59)
        client.request()
        assert (await client.answer()).status == 200
        for _ in range(4):
            served.pass_time(15)
        assert await client.ended() == b""
        await until(lambda: not served.server.connections)


@on_both_loops
async def test_a_busy_connection_is_not_idle() -> None:
    async with serving(echo, idle_seconds=60) as served:
        client = await served.client()
        for _ in range(8):
            client.request()
            assert (await client.answer()).status == 200
            served.pass_time(50)


@on_both_loops
async def test_a_connection_with_a_request_under_way_is_not_idle() -> None:
    held = HeldRequests()
    async with serving(held, idle_seconds=60) as served:
        client = await served.client()
        client.request()
        visit = await held.visit(0)
        for _ in range(10):
            served.pass_time(100)
        visit.reply(answer("at last"))
        assert (await client.answer()).body == b"at last"
        assert visit.cancelled == 0


@on_both_loops
async def test_a_client_that_does_not_read_is_not_read_from_until_it_does() -> None:
    handled: list[str] = []

    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        handled.append(request.path)
        reply(answer(LARGE))

    async with serving(handler, write_buffer_bytes=65536) as served:
        client = await served.client(receive_buffer=65536)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport
        client.send(request_bytes("/0") + request_bytes("/1"))
        client.request("/2")
        connection = await served.connection()
        await until(lambda: connection.paused)
        assert handled == ["/0"]
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]  # a socket's transport
        for _ in range(3):
            assert len((await client.answer()).body) == len(LARGE)
        assert handled == ["/0", "/1", "/2"]


@on_both_loops
async def test_a_client_that_never_reads_is_dropped_and_its_requests_cancelled() -> None:
    held = HeldRequests()
    async with serving(held, write_buffer_bytes=65536, stalled_seconds=30) as served:
        client = await served.client(receive_buffer=65536)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport
        client.send(request_bytes("/0") + request_bytes("/1"))
        await held.visit(1)
        held.visits[0].reply(answer(LARGE))
        served.pass_time(29)
        assert held.visits[1].cancelled == 0
        # The system may take some more at first; after that nothing moves.
        while served.server.connections:
            served.pass_time(30)
        assert [visit.cancelled for visit in held.visits] == [0, 1]


@on_both_loops
async def test_a_client_that_reads_slowly_is_not_dropped() -> None:
    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        reply(answer(LARGE))

    async with serving(handler, write_buffer_bytes=65536, stalled_seconds=30) as served:
        client = await served.client(receive_buffer=65536)
        client.request(headers="Connection: close\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        for _ in range(len(LARGE) // MEBIBYTE):
            assert len(await client.reader.readexactly(MEBIBYTE)) == MEBIBYTE
            served.pass_time(31)
        assert await client.ended() == b""


@on_both_loops
async def test_a_refused_client_that_stays_is_dropped_in_the_end() -> None:
    async with serving(echo, linger_seconds=5) as served:
        client = await served.client()
        client.send("garbage\r\n\r\n")
        assert (await client.answer()).status == 400
        served.pass_time(4)
        assert len(served.server.connections) == 1
        served.pass_time(1)
        await until(lambda: not served.server.connections)
