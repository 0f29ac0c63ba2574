"""What the sockets bring in one turn is handled together, and what is answered in one turn is written together."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.runtime.http.exchanges import UNSENT_BYTES
from penstock.runtime.http.server_state import ARRIVED_BYTES
from tests.runtime.harness import until
from tests.runtime.http.harness import HeldRequests, answer, on_both_loops, request_bytes, serving


class Watched:
    """A transport that notes what is written to it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)
        self._transport.write(data)

    def writelines(self, pieces: list[bytes]) -> None:
        self.writes.append(b"".join(pieces))
        self._transport.writelines(pieces)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@on_both_loops
async def test_answers_of_one_turn_are_written_in_one_go() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.send(b"".join(request_bytes(f"/{number}") for number in range(3)))
        await held.visit(2)
        connection = await served.connection()
        watched = Watched(connection.transport)
        connection.transport = watched  # type: ignore[assignment]  # it is one in all that matters
        for number in range(3):
            held.visits[number].reply(answer(str(number)))
        assert watched.writes == []
        assert [got.body for got in await client.answers(3)] == [b"0", b"1", b"2"]
        assert len(watched.writes) == 1


@on_both_loops
async def test_a_large_answer_does_not_wait_for_the_end_of_the_turn() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.request("/large")
        await held.visit(0)
        connection = await served.connection()
        watched = Watched(connection.transport)
        connection.transport = watched  # type: ignore[assignment]  # it is one in all that matters
        held.visits[0].reply(answer("x" * (UNSENT_BYTES + 1)))
        assert len(watched.writes) == 1
        assert len((await client.answers(1))[0].body) == UNSENT_BYTES + 1


@on_both_loops
async def test_what_was_answered_is_sent_before_the_connection_is_closed() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        client = await served.client()
        client.request("/last")
        visit = await held.visit(0)
        visit.reply(answer("here"))
        served.server.stop_accepting()  # in the same turn
        assert (await client.answers(1))[0].body == b"here"
        await until(lambda: not served.server.connections)


@on_both_loops
async def test_who_has_asked_before_the_server_stops_is_answered() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        await served.client()
        connection = await served.connection()
        connection.data_received(request_bytes("/asked"))
        assert held.visits == []
        served.server.stop_accepting()
        assert [visit.request.path for visit in held.visits] == ["/asked"]
        held.visits[0].reply(answer("yes"))


@on_both_loops
async def test_much_is_taken_before_more_is_read() -> None:
    held = HeldRequests()
    async with serving(held) as served:
        await served.client()
        connection = await served.connection()
        connection.data_received(request_bytes("/small"))
        assert held.visits == []
        connection.data_received(request_bytes("/large", b"x" * ARRIVED_BYTES))
        assert [visit.request.path for visit in held.visits] == ["/small", "/large"]
        for visit in held.visits:
            visit.reply(answer("done"))


@on_both_loops
async def test_a_request_that_came_before_the_end_of_the_stream_counts() -> None:
    held = HeldRequests(cancellable=False)
    async with serving(held) as served:
        client = await served.client()
        connection = await served.connection()
        connection.data_received(request_bytes("/whole"))
        connection.eof_received()
        assert [visit.request.path for visit in held.visits] == ["/whole"]
        held.visits[0].reply(answer("yes"))
        assert (await client.answers(1))[0].body == b"yes"
