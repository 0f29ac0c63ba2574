"""What is malformed, too large or too much is refused with a status and a sentence, and the server lives on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.runtime.http.answers import encode_answer
from penstock.runtime.http.server_state import UNUSED_SECONDS
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from tests.runtime.harness import until
from tests.runtime.http.harness import HeldRequests, answer, echo, on_both_loops, request_bytes, serving

HEAD = "POST / HTTP/1.1\r\nHost: h\r\n"

MALFORMED = {
    "garbage": ("\x16\x03\x01\x02\x00\x01\x00\x01", 400),
    "no request line": ("hello\r\n\r\n", 400),
    "bare line feeds": ("GET / HTTP/1.1\nHost: h\n\n", 400),
    "two lengths": (f"{HEAD}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    "a length and chunks": (f"{HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks and a length": (f"{HEAD}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    "chunked is not the last coding": (f"{HEAD}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400),
    "an unknown coding": (f"{HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks in HTTP/1.0": ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "a blank before the colon": ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400),
    "a folded header": (f"{HEAD}X: a\r\n b\r\n\r\n", 400),
    "a length that is no number": (f"{HEAD}Content-Length: +3\r\n\r\nabc", 400),
    "a length beyond all numbers": (f"{HEAD}Content-Length: {10**30}\r\n\r\n", 400),
    "a chunk without a size": (f"{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    "no host": ("GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "two authorizations": (f"{HEAD}Authorization: a\r\nauthorization: b=c\r\n\r\n", 400),
    "an unknown expectation": (f"{HEAD}Content-Length: 1\r\nExpect: wonders\r\n\r\n", 417),
    "a later version": ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 400),
    "the preface of HTTP/2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a tunnel": ("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", 405),
    "a long target": (f"GET /{'x' * 300} HTTP/1.1\r\nHost: h\r\n\r\n", 414),
    "a long header": (f"{HEAD}X: {'x' * 3000}\r\n\r\n", 431),
    "many headers": (HEAD + "".join(f"X{n}: y\r\n" for n in range(20)) + "\r\n", 431),
    "many headers of one name": (HEAD + "X: y\r\n" * 20 + "\r\n", 431),
    "a long body": (f"{HEAD}Content-Length: 5001\r\n\r\n", 413),
    "many chunks": (f"{HEAD}Transfer-Encoding: chunked\r\n\r\n" + f"400\r\n{'x' * 1024}\r\n" * 5, 413),
}
SMALL: dict[str, Any] = {"target_bytes": 256, "head_bytes": 2000, "headers": 16, "body_bytes": 5000}


@pytest.mark.parametrize("case", MALFORMED)
@on_both_loops
async def test_what_is_malformed_is_refused_and_the_connection_closed(case: str) -> None:
    data, status = MALFORMED[case]
    async with serving(echo, **SMALL) as served:
        client = await served.client()
        client.send(data)
        got = await client.answer()
        assert (got.status, got.header("connection")) == (status, "close")
        assert len(got.body) > 10
        assert await client.ended() == b""
        other = await served.client()
        other.request()
        assert (await other.answer()).status == 200


@on_both_loops
async def test_a_head_without_end_is_refused_before_it_is_taken() -> None:
    async with serving(echo, **SMALL) as served:
        client = await served.client()
        client.send(HEAD)
        client.send("X: " + "x" * 200_000)
        assert (await client.answer()).status == 431


@on_both_loops
async def test_a_refusal_reaches_a_client_that_is_still_sending() -> None:
    async with serving(echo, body_bytes=5000) as served:
        client = await served.client()
        client.send(f"{HEAD}Content-Length: 4000000\r\n\r\n")
        client.send(b"x" * 4_000_000)
        got = await client.answer()
        assert (got.status, got.body) == (413, b"The body of a request may have 5000 bytes at most.\n")


@on_both_loops
async def test_a_refusal_waits_for_the_answers_before_it() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(request_bytes("/0") + request_bytes("/1") + b"garbage\r\n\r\n")
        await held.visit(1)
        held.visits[1].reply(answer("one"))
        held.visits[0].reply(answer("zero"))
        got = await client.answers(3)
        assert [(one.status, one.body[:4]) for one in got[:2]] == [(200, b"zero"), (200, b"one")]
        assert got[2].status == 400
        assert await client.ended() == b""


@on_both_loops
async def test_a_refusal_makes_no_room_for_the_requests_before_it() -> None:
    held = HeldRequests()
    async with serving(held, pipelined=2) as served:
        client = await served.client()
        client.send(b"".join(request_bytes(f"/{number}") for number in range(4)) + b"garbage\r\n\r\n")
        await held.visit(1)
        for number in range(4):
            assert len(held.visits) <= number + 2
            (await held.visit(number)).reply(answer(str(number)))
        got = await client.answers(5)
        assert [one.status for one in got] == [200, 200, 200, 200, 400]


@on_both_loops
async def test_a_refusal_hands_over_nothing_while_the_server_is_held() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.request("/0")
        (await held.visit(0)).reply(answer("zero"))
        assert (await client.answer()).body == b"zero"
        served.server.hold()
        client.send(request_bytes("/1") + b"garbage\r\n\r\n")
        await until(lambda: bool(served.server.held))
        assert len(held.visits) == 1
        served.server.resume()
        (await held.visit(1)).reply(answer("one"))
        assert [got.status for got in await client.answers(2)] == [200, 400]


@on_both_loops
async def test_a_handler_that_raises_is_answered_for(caplog: pytest.LogCaptureFixture) -> None:
    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        if request.path == "/bad":
            raise RuntimeError("the reason")
        reply(answer("good"))

    def refuse(status: int, sentence: str) -> HttpResponse:
        return answer(f"dressed {status}", status)

    async with serving(handler, refuse=refuse) as served:
        client = await served.client()
        client.send(request_bytes("/bad") + request_bytes("/good"))
        got = await client.answers(2)
        assert [(one.status, one.body) for one in got] == [(500, b"dressed 500"), (200, b"good")]
        assert "the reason" in caplog.text
        client.send("garbage\r\n\r\n")
        assert (await client.answer()).body == b"dressed 400"


@on_both_loops
async def test_a_handler_that_raises_after_its_answer_has_answered() -> None:
    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        reply(answer("done"))
        raise RuntimeError("too late to matter")

    async with serving(handler) as served:
        client = await served.client()
        for _ in range(2):
            client.request()
            assert (await client.answer()).body == b"done"


@on_both_loops
async def test_a_refusal_that_cannot_be_dressed_is_plain() -> None:
    def refuse(status: int, sentence: str) -> HttpResponse:
        raise RuntimeError("no clothes")

    async with serving(echo, refuse=refuse) as served:
        client = await served.client()
        client.send("garbage\r\n\r\n")
        got = await client.answer()
        assert (got.status, got.header("content-type")) == (400, "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("X-Odd", value) for value in ("a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b", "snow \u2603")),
        *(("Content-Type", value) for value in ("a\r\nSet-Cookie: b", "snow \u2603")),
        *((name, "a") for name in ("X\r\nSet-Cookie", "X: y", "", "\u2603")),
    ],
)
def test_a_header_cannot_break_out_of_its_line(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be sent|latin-1"):
        encode_answer(HttpResponse(200, ((name, value),), b""), "", "", bodiless=False)


@on_both_loops
async def test_an_answer_that_cannot_be_sent_is_replaced() -> None:
    def handler(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        reply(answer("secret", X_Odd="a\r\nX-More: b"))

    async with serving(handler) as served:
        client = await served.client()
        for _ in range(2):
            client.request()
            got = await client.answer()
            assert (got.status, got.header("x-more")) == (500, None)
            assert b"secret" not in got.body


@on_both_loops
async def test_connections_beyond_the_limit_are_told_so() -> None:
    async with serving(echo, max_connections=2) as served:
        clients = [await served.client() for _ in range(2)]
        for client in clients:
            client.request()
            assert (await client.answer()).status == 200
        third = await served.client()
        assert (await third.answer()).status == 503
        assert await third.ended() == b""
        third.close()
        clients[0].close()
        await until(lambda: len(served.server.connections) == 1)
        fourth = await served.client()
        fourth.request()
        assert (await fourth.answer()).status == 200


@on_both_loops
async def test_connections_that_say_nothing_keep_nobody_out() -> None:
    async with serving(echo, max_connections=2) as served:
        user = await served.client()
        user.request()
        assert (await user.answer()).status == 200
        silent = await served.client()
        await until(lambda: len(served.server.connections) == 2)
        newcomer = await served.client()
        newcomer.request()
        assert (await newcomer.answer()).status == 200
        assert await silent.ended() == b""
        user.request()
        assert (await user.answer()).status == 200


@on_both_loops
async def test_who_was_only_refused_goes_before_who_was_served() -> None:
    def judge(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
        reply(answer(status=403 if request.path == "/unsigned" else 200))

    async with serving(judge, max_connections=2) as served:
        user, stranger = await served.client(), await served.client()
        user.request()
        assert (await user.answer()).status == 200
        served.pass_time(2 * UNUSED_SECONDS)
        stranger.request("/unsigned")
        assert (await stranger.answer()).status == 403
        newcomer = await served.client()
        newcomer.request()
        assert (await newcomer.answer()).status == 200
        assert await stranger.ended() == b""
        user.request()
        assert (await user.answer()).status == 200


@on_both_loops
async def test_who_begins_a_request_and_does_not_go_on_keeps_nobody_out() -> None:
    async with serving(echo, max_connections=1) as served:
        slow = await served.client()
        slow.send("POST / HT")
        connection = await served.connection()
        await until(lambda: connection.begun)
        newcomer = await served.client()
        newcomer.request()
        assert (await newcomer.answer()).status == 200
        assert await slow.ended() == b""


@on_both_loops
async def test_the_longest_idle_goes_and_who_waits_for_an_answer_stays() -> None:
    held = HeldRequests()
    async with serving(held, max_connections=2) as served:
        waiting, idle = await served.client(), await served.client()
        waiting.request("/waits")
        visit = await held.visit(0)
        idle.request("/done")
        (await held.visit(1)).reply(answer("done"))
        assert (await idle.answer()).status == 200
        served.pass_time(2 * UNUSED_SECONDS)
        newcomer = await served.client()
        newcomer.request("/new")
        (await held.visit(2)).reply(answer("new"))
        assert (await newcomer.answer()).body == b"new"
        assert await idle.ended() == b""
        visit.reply(answer("at last"))
        assert (await waiting.answer()).body == b"at last"


@on_both_loops
async def test_what_all_connections_hold_has_a_bound() -> None:
    held = HeldRequests()
    async with serving(held, buffered_bytes=10_000) as served:
        first, second, third = [await served.client() for _ in range(3)]
        first.request("/0", b"x" * 6000)
        await held.visit(0)
        second.request("/1", b"y" * 6000)
        assert (await second.answer()).status == 503
        third.send(f"{HEAD}Content-Length: 6000\r\n\r\n")
        third.send(b"z" * 5999)
        assert (await third.answer()).status == 503
        assert len(held.visits) == 1
        held.visits[0].reply(answer("zero"))
        assert (await first.answer()).status == 200
        fourth = await served.client()
        fourth.request("/2", b"x" * 6000)
        (await held.visit(1)).reply(answer("two"))
        assert (await fourth.answer()).body == b"two"


@on_both_loops
async def test_unfinished_requests_make_room_for_whole_ones() -> None:
    async with serving(echo, buffered_bytes=10_000) as served:
        known, slow, stranger, newcomer = [await served.client() for _ in range(4)]
        known.request("/0", b"x")
        assert (await known.answer()).status == 200
        bodies = 0
        for unfinished in (known, slow, stranger):
            unfinished.send(f"{HEAD}Content-Length: 3300\r\n\r\n")
            unfinished.send(b"z" * 3000)
            bodies += 3000
            await until(lambda: served.server.budget.used_bytes >= bodies)  # noqa: B023  # called at once
        newcomer.request("/1", b"y" * 2000)
        assert (await newcomer.answer()).body == b"POST /1 " + b"y" * 2000
        refused = await slow.answer()  # the oldest on which no request was served
        assert (refused.status, await slow.ended()) == (503, b"")
        for unfinished in (known, stranger):
            unfinished.send(b"z" * 300)
            assert (await unfinished.answer()).body == b"POST / " + b"z" * 3300


@on_both_loops
async def test_what_waits_while_the_server_is_held_has_a_bound() -> None:
    async with serving(echo, buffered_bytes=10_000) as served:
        served.server.hold()
        client = await served.client()
        client.request("/0", b"x" * 20_000)
        assert (await client.answer()).status == 503
