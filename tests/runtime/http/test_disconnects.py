"""Clients that go away, wholly or by half: what nobody waits for is cancelled once, what is answered is sent."""

from __future__ import annotations

from collections.abc import Callable

from penstock.runtime.http.server import HttpServer
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from tests.runtime.harness import until
from tests.runtime.http.harness import HeldRequests, answer, echo, on_both_loops, request_bytes, serving


@on_both_loops
async def test_a_client_that_closes_cancels_its_requests_once() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/1"))
        await held.visit(1)
        held.visits[1].reply(answer("one"))
        client.close()
        await until(lambda: not served.server.connections)
        assert [visit.cancelled for visit in held.visits] == [1, 0]
        for visit in held.visits:
            visit.reply(answer("for nobody"))
        assert [visit.cancelled for visit in held.visits] == [1, 0]


@on_both_loops
async def test_a_client_that_resets_its_connection_cancels_its_requests_once() -> None:
    held = HeldRequests(cancellable=True)
    async with serving(held) as served:
        client = await served.client()
        client.request()
        visit = await held.visit(0)
        client.writer.transport.abort()
        await until(lambda: not served.server.connections)
        assert visit.cancelled == 1


@on_both_loops
async def test_a_request_that_was_answered_is_not_cancelled() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.request()
        visit = await held.visit(0)
        visit.reply(answer("done"))
        assert (await client.answer()).body == b"done"
        client.close()
        await until(lambda: not served.server.connections)
        assert visit.cancelled == 0


@on_both_loops
async def test_a_cancel_that_fails_does_no_harm() -> None:
    arrived: list[HttpRequest] = []

    def handler(
        request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]
    ) -> Callable[[], None] | None:
        arrived.append(request)

        def cancel() -> None:
            raise RuntimeError("cannot stop")

        return cancel

    async with serving(handler) as served:
        client = await served.client()
        client.send(request_bytes() + request_bytes())
        await until(lambda: len(arrived) == 2)
        client.close()
        await until(lambda: not served.server.connections)


@on_both_loops
async def test_a_client_that_closed_its_half_gets_its_answers() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/1"))
        client.half_close()
        assert [got.body for got in await client.answers(2)] == [b"POST /0 ", b"POST /1 "]
        assert await client.ended() == b""
        await until(lambda: not served.server.connections)


@on_both_loops
async def test_a_client_that_closed_its_half_gets_late_answers_of_what_cannot_be_cancelled() -> None:
    held = HeldRequests(cancellable=False)
    async with serving(held) as served:
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/1") + b"POST / HT")
        client.half_close()
        connection = await served.connection()
        await until(lambda: connection.ended)
        served.pass_time(1000)
        held.visits[1].reply(answer("one"))
        held.visits[0].reply(answer("zero"))
        got = await client.answers(2)
        assert [(one.body, one.header("connection")) for one in got] == [(b"zero", None), (b"one", "close")]
        assert await client.ended() == b""


@on_both_loops
async def test_a_client_that_closed_its_half_gives_up_what_can_be_cancelled_and_what_follows_it() -> None:
    held = HeldRequests(cancellable=False)
    polls = HeldRequests()

    def handler(
        request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]
    ) -> Callable[[], None] | None:
        return (polls if request.path == "/poll" else held)(request, peer, reply)

    async with serving(handler) as served:
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/poll") + request_bytes("/2"))
        client.half_close()
        connection = await served.connection()
        await until(lambda: connection.ended)
        assert [visit.cancelled for visit in polls.visits] == [1]
        held.visits[1].reply(answer("two"))
        polls.visits[0].reply(answer("for nobody"))
        held.visits[0].reply(answer("zero"))
        got = await client.answer()
        assert (got.body, got.header("connection")) == (b"zero", "close")
        assert await client.ended() == b""


@on_both_loops
async def test_a_half_close_behind_more_requests_than_may_be_under_way_is_seen_in_the_end() -> None:
    held = HeldRequests(cancellable=False)
    async with serving(held, pipelined=2) as served:
        client = await served.client()
        client.send(b"".join(request_bytes(f"/{number}", b"x" * 9000) for number in range(6)))
        client.half_close()
        for number in range(6):
            (await held.visit(number)).reply(answer(str(number)))
        got = await client.answers(6)
        assert [one.body for one in got] == [str(number).encode() for number in range(6)]
        assert await client.ended() == b""


@on_both_loops
async def test_a_client_that_is_gone_while_it_is_not_read_from_is_noticed_when_the_server_goes_on() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.request("/poll")
        visit = await held.visit(0)
        served.server.hold()
        client.request("/more")
        await until(lambda: bool(served.server.held))
        client.close()
        served.server.resume()
        await until(lambda: not served.server.connections)
        assert [one.cancelled for one in held.visits] == [1] * len(held.visits)
        assert visit.cancelled == 1


@on_both_loops
async def test_a_request_that_is_not_whole_when_its_client_leaves_is_no_request() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
        client.half_close()
        assert await client.ended() == b""
        await until(lambda: not served.server.connections)
        assert held.visits == []


@on_both_loops
async def test_a_handler_may_drop_its_own_connection() -> None:
    servers: list[HttpServer] = []
    cancelled: list[str] = []

    def handler(
        request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]
    ) -> Callable[[], None] | None:
        servers[0].drop_all()
        reply(answer("for nobody"))
        return lambda: cancelled.append(request.path)

    async with serving(handler) as served:
        servers.append(served.server)
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/1"))
        assert await client.ended() == b""
        await until(lambda: not served.server.connections)
        assert cancelled == ["/0"]
