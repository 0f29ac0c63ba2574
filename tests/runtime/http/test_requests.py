"""Well-formed requests in all their forms, and the order of their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from tests.runtime.harness import until
from tests.runtime.http.harness import HeldRequests, answer, echo, on_both_loops, request_bytes, serving


@on_both_loops
async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with serving(echo) as served:
        client = await served.client()
        for number in range(3):
            client.request(f"/{number}", b"body")
            got = await client.answer()
            assert (got.status, got.body) == (200, f"POST /{number} body".encode())
            assert got.header("connection") is None


@on_both_loops
async def test_a_request_is_handed_over_as_it_was_sent() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.request(
            "/a%20b?c=%2F", b"\x00\xff", headers="X-One: 1  \r\nx-one: 2\r\nX-Odd: caf\xe9\xa0\r\n"
        )
        visit = await held.visit(0)
        assert visit.request == HttpRequest(
            "POST",
            "/a%20b",
            "c=%2F",
            {"host": "localhost", "x-one": "1,2", "x-odd": "caf\xe9\xa0", "content-length": "2"},
            b"\x00\xff",
        )
        assert visit.peer == Peer("127.0.0.1", secure=False)


@on_both_loops
async def test_usual_headers_lose_the_blanks_around_them() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send("GET http://localhost/x?y HTTP/1.1\r\nHost:localhost \t\r\nUser-Agent: \t me\t\r\n\r\n")
        request = (await held.visit(0)).request
        assert (request.path, request.query) == ("/x", "y")
        assert request.headers == {"host": "localhost", "user-agent": "me"}


@on_both_loops
async def test_late_answers_leave_in_the_order_of_the_requests() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(b"".join(request_bytes(f"/{number}") for number in range(5)))
        await held.visit(4)
        for number in (3, 1, 4, 0, 2):
            held.visits[number].reply(answer(str(number)))
        assert [got.body for got in await client.answers(5)] == [b"0", b"1", b"2", b"3", b"4"]


@on_both_loops
async def test_answers_given_at_once_wait_for_a_late_one_before_them() -> None:
    late: list[Callable[[HttpResponse], None]] = []

    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        if request.path == "/late":
            late.append(reply)
        else:
            reply(answer(request.path))

    async with serving(handler) as served:
        client = await served.client()
        client.send(request_bytes("/late") + request_bytes("/now"))
        client.request("/then")
        other = await served.client()
        other.request("/other")
        assert (await other.answer()).body == b"/other"
        late[0](answer("late"))
        assert [got.body for got in await client.answers(3)] == [b"late", b"/now", b"/then"]


@on_both_loops
async def test_only_so_many_requests_of_a_connection_are_under_way() -> None:
    held = HeldRequests()
    async with serving(held, pipelined=3) as served:
        client = await served.client()
        client.send(b"".join(request_bytes(f"/{number}", b"x" * 5000) for number in range(10)))
        await held.visit(2)
        other = await served.client()
        other.request("/other")
        await held.visit(3)
        assert [visit.request.path for visit in held.visits] == ["/0", "/1", "/2", "/other"]
        held.visits[1].reply(answer("1"))  # not its turn: its place is not free
        held.visits[0].reply(answer("0"))
        await held.visit(5)
        assert [visit.request.path for visit in held.visits[4:]] == ["/3", "/4"]
        held.visits[2].reply(answer("2"))
        for number in range(3, 10):
            (await held.visit(number + 1)).reply(answer(str(number)))
        assert [got.body for got in await client.answers(10)] == [str(n).encode() for n in range(10)]


@on_both_loops
async def test_large_bodies_of_one_connection_are_handled_one_after_the_other() -> None:
    held = HeldRequests()
    async with serving(held, body_bytes=100_000) as served:
        client = await served.client()
        for number in range(3):
            client.request(f"/{number}", bytes([number]) * 90_000)
        for number in range(3):
            visit = await held.visit(number)
            if number > 0:
                held.visits[number - 1].reply(answer("done"))
            assert visit.request.body == bytes([number]) * 90_000
        held.visits[2].reply(answer("done"))
        assert len(await client.answers(3)) == 3


@on_both_loops
async def test_only_the_first_answer_counts() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/1"))
        await held.visit(1)
        for text in ("one", "two"):
            held.visits[1].reply(answer(text))
        for text in ("zero", "nought"):
            held.visits[0].reply(answer(text))
        assert [got.body for got in await client.answers(2)] == [b"zero", b"one"]
        held.visits[0].reply(answer("much too late"))
        client.request("/2")
        (await held.visit(2)).reply(answer("two"))
        assert (await client.answer()).body == b"two"


@on_both_loops
async def test_a_client_that_asks_is_told_to_go_on() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-Continue\r\n\r\n")
        assert (await client.answer()).status == 100
        client.send(b"body")
        assert (await client.answer()).body == b"POST / body"


@on_both_loops
async def test_a_client_that_does_not_wait_for_leave_is_not_told_to_go_on() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.request("/", b"body", headers="Expect: 100-continue\r\n")
        assert (await client.answer()).status == 200


@on_both_loops
async def test_leave_to_go_on_waits_for_the_answer_before_it_and_then_has_a_time() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(request_bytes("/0"))
        client.send("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        connection = await served.connection()
        await until(lambda: connection.reader.continue_due)
        served.pass_time(1000)
        held.visits[0].reply(answer("zero"))
        assert (await client.answer()).body == b"zero"
        assert (await client.answer()).status == 100
        served.pass_time(10)
        served.pass_time(10)
        assert (await client.answer()).status == 408
        assert len(held.visits) == 1


@on_both_loops
async def test_an_http_1_0_client_is_answered_and_left() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.send("GET /old HTTP/1.0\r\n\r\n")
        got = await client.answer()
        assert (got.body, got.header("connection")) == (b"GET /old ", "close")
        assert await client.ended() == b""


@on_both_loops
async def test_an_http_1_0_client_may_stay() -> None:
    async with serving(echo) as served:
        client = await served.client()
        for _ in range(2):
            client.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await client.answer()).header("connection") == "keep-alive"


@on_both_loops
async def test_nothing_after_the_last_request_is_a_request() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.send(request_bytes("/last", headers="Connection: close\r\n") + request_bytes("/more"))
        got = await client.answer()
        assert (got.body, got.header("connection")) == (b"POST /last ", "close")
        assert await client.ended() == b""


@on_both_loops
async def test_head_is_answered_without_a_body() -> None:
    async with serving(echo) as served:
        client = await served.client()
        client.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n")
        client.request("/next")
        assert (await client.answer(bodiless=True)).header("content-length") == str(len(b"HEAD /x "))
        assert (await client.answer()).body == b"POST /next "


@on_both_loops
async def test_chunked_bodies_arrive_whole() -> None:
    async with serving(echo) as served:
        client = await served.client()
        head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(f"{head}3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n")
        assert (await client.answer()).body == b"POST / abcdefg"
        client.send(f"{head}0\r\n\r\n")
        assert (await client.answer()).body == b"POST / "


@pytest.mark.parametrize("step", [1, 7, 1000])
@on_both_loops
async def test_requests_may_arrive_in_any_pieces(step: int) -> None:
    data = request_bytes("/a?b", b"first") + request_bytes("/c", b"second" * 300, headers="X-Y: z\r\n")
    async with serving(echo) as served:
        client = await served.client()
        for start in range(0, len(data), step):
            client.send(data[start : start + step])
            await client.writer.drain()
        assert (await client.answer()).body == b"POST /a first"
        assert (await client.answer()).body == b"POST /c " + b"second" * 300


@on_both_loops
async def test_a_large_body_arrives_and_a_large_answer_leaves() -> None:
    body = bytes(range(256)) * 8192
    async with serving(echo) as served:
        client = await served.client()
        client.request("/", body)
        assert (await client.answer()).body == b"POST / " + body


@on_both_loops
async def test_an_offer_of_another_protocol_is_ignored() -> None:
    async with serving(echo) as served:
        client = await served.client()
        offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
        client.send(request_bytes("/one", b"body", headers=offer) + request_bytes("/two"))
        assert [got.body for got in await client.answers(2)] == [b"POST /one body", b"POST /two "]


@on_both_loops
async def test_what_the_server_says_of_itself_is_said_once() -> None:
    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        own: dict[str, Any] = {
            "content-length": "99",
            "DATE": "today",
            "Connection": "close",
            "Transfer-Encoding": "chunked",
        }
        reply(answer("four", X_Odd="kept", **own))

    async with serving(handler) as served:
        client = await served.client()
        for _ in range(2):
            client.request()
            got = await client.answer()
            assert (got.body, got.header("x_odd")) == (b"four", "kept")
            assert (got.header("connection"), got.header("transfer-encoding")) == (None, None)


@on_both_loops
async def test_an_answer_that_has_no_body_has_no_length() -> None:
    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        reply(answer(status=204))

    async with serving(handler) as served:
        client = await served.client()
        for _ in range(2):
            client.request()
            assert (await client.answer()).header("content-length") is None
