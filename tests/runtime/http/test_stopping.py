"""A server that is held takes nothing; one that stops finishes what it has begun."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.runtime.harness import until
from tests.runtime.http.harness import HeldRequests, answer, echo, on_both_loops, request_bytes, serving


@on_both_loops
async def test_requests_wait_while_the_server_is_held() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client, other = await served.client(), await served.client()
        client.request("/0")
        visit = await held.visit(0)
        served.server.hold()
        client.send(request_bytes("/1", b"x" * 50_000) + request_bytes("/2"))
        other.request("/other")
        await until(lambda: len(served.server.held) == 2)
        visit.reply(answer("zero"))  # what is under way is answered all the same
        assert (await client.answer()).body == b"zero"
        served.pass_time(1000)
        assert len(held.visits) == 1
        served.server.resume()
        await held.visit(3)
        assert sorted(one.request.path for one in held.visits) == ["/0", "/1", "/2", "/other"]
        for one in held.visits:
            one.reply(answer(one.request.path))
        assert [got.body for got in await client.answers(2)] == [b"/1", b"/2"]
        assert (await other.answer()).body == b"/other"


@on_both_loops
async def test_a_server_that_is_held_gives_no_leave_to_go_on() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n")
        connection = await served.connection()
        await until(lambda: connection.reader.in_head)
        served.server.hold()
        client.send("\r\n")
        await until(lambda: bool(served.server.held))
        served.server.resume()
        assert (await client.answer()).status == 100
        client.send("x")
        assert (await client.answer()).body == b"POST / x"


@on_both_loops
async def test_a_long_poll_is_answered_when_the_server_stops() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        idle, polling = await served.client(), await served.client()
        polling.request("/poll")
        visit = await held.visit(0)
        await until(lambda: len(served.server.connections) == 2)
        served.server.stop_accepting()
        assert await idle.ended() == b""
        with pytest.raises(ConnectionError):
            await served.client()
        closing = asyncio.ensure_future(served.server.close(grace_seconds=20))
        await until(lambda: len(served.server.connections) == 1)
        assert (visit.cancelled, closing.done()) == (0, False)
        visit.reply(answer("nothing"))
        got = await polling.answer()
        assert (got.body, got.header("connection")) == (b"nothing", "close")
        assert await polling.ended() == b""
        await closing


@on_both_loops
async def test_only_the_last_of_several_answers_closes() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/1"))
        await held.visit(1)
        served.server.stop_accepting()
        held.visits[0].reply(answer("zero"))
        held.visits[1].reply(answer("one"))
        got = await client.answers(2)
        assert [one.header("connection") for one in got] == [None, "close"]
        assert await client.ended() == b""


@on_both_loops
async def test_a_request_that_is_arriving_when_the_server_stops_is_answered() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.send("POST /half HTTP/1.1\r\n")
        connection = await served.connection()
        await until(lambda: connection.reader.arriving)
        served.server.stop_accepting()
        client.send("Host: h\r\n\r\n")
        got = await client.answer()
        assert (got.body, got.header("connection")) == (b"POST /half ", "close")


@on_both_loops
async def test_what_takes_longer_than_its_grace_is_dropped_and_cancelled() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.request()
        visit = await held.visit(0)
        await served.server.close(grace_seconds=0.01)
        assert visit.cancelled == 1
        assert await client.ended() == b""


@on_both_loops
async def test_drop_all_ends_everything_at_once() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client, idle = await served.client(), await served.client()
        client.request()
        visit = await held.visit(0)
        served.server.drop_all()
        assert visit.cancelled == 1
        assert served.server.connections == set()
        visit.reply(answer("for nobody"))
        assert await client.ended() == b""
        assert await idle.ended() == b""


@on_both_loops
async def test_two_thousand_idle_connections_and_one_that_is_served() -> None:
    async with serving(echo) as served:
        loop = asyncio.get_running_loop()
        idle = []
        for _ in range(2000):
            one = socket.socket()
            one.setblocking(False)
            await loop.sock_connect(one, ("127.0.0.1", served.port))
            idle.append(one)
        await until(lambda: len(served.server.connections) == 2000)
        client = await served.client()
        client.request()
        assert (await client.answer()).status == 200
        served.pass_time(1000)
        await until(lambda: not served.server.connections)
        for one in idle:
            assert await loop.sock_recv(one, 1) == b""
            one.close()
