"""A client that is over a limit: it waits and asks the same again, for as long as its timeout."""

from __future__ import annotations

import asyncio

import pytest

from penstock import ErrorCode, PenstockError
from penstock.client_core.backoff import FIRST_SECONDS, Slowdown
from penstock.wire.messages import Count, Done, Ping, Purge, Subscribe
from tests.client.peer import async_test, connected


class LongestPauses:
    """Dice that always cut nothing."""

    def uniform(self, low: float, high: float) -> float:
        return high


def test_pauses_grow_until_the_next_would_be_too_long() -> None:
    slowdown = Slowdown(1.0, LongestPauses())  # type: ignore[arg-type]  # as much of dice as it uses
    assert slowdown.pause(0.0) == FIRST_SECONDS
    assert slowdown.pause(0.0) == 2 * FIRST_SECONDS
    assert slowdown.pause(0.99) is None


@async_test
async def test_what_a_limit_refuses_is_asked_again_under_its_id() -> None:
    async with connected() as (peer, client):
        purging = asyncio.ensure_future(client.queue("orders").purge())
        seen = await peer.next(Purge)
        for _ in range(2):
            seen.refuse(ErrorCode.THROTTLED)
            again = await peer.next(Purge)
            assert again.request_id == seen.request_id
            seen = again
        seen.answer(Count(3))
        assert await purging == 3


@async_test
async def test_after_its_timeout_the_refusal_is_told() -> None:
    async with connected(timeout=2.0) as (peer, client):
        purging = asyncio.ensure_future(client.queue("orders").purge())
        tries = 0

        async def refuse() -> None:
            nonlocal tries
            while True:
                (await peer.next(Purge)).refuse(ErrorCode.THROTTLED, "slow down")
                tries += 1

        refusing = asyncio.ensure_future(refuse())
        with pytest.raises(PenstockError, match="slow down") as caught:
            await purging
        refusing.cancel()
        assert caught.value.code is ErrorCode.THROTTLED
        assert caught.value.retryable
        assert tries > 1


@async_test
async def test_what_waits_for_a_limit_is_sent_once_where_the_connection_breaks_meanwhile() -> None:
    async with connected() as (peer, client):
        link = client._link
        purging = asyncio.ensure_future(client.queue("orders").purge())
        seen = await peer.next(Purge)
        old, call = link._connection, link._table.calls[seen.request_id]
        assert old is not None
        seen.refuse(ErrorCode.THROTTLED)
        peer.cut()
        again = await peer.next(Purge)
        link._ask_again(old, seen.request_id, call)  # as its pause ends
        await link.ask(Ping(), Done)
        assert peer.quiet(), "the same id twice on one connection is refused by servers"
        again.answer(Count(3))
        assert await purging == 3


@async_test
async def test_a_subscription_is_opened_again() -> None:
    async with connected() as (peer, client), client.queue("orders").consume(credit=10) as consumer:
        first = asyncio.ensure_future(anext(aiter(consumer)))
        seen = await peer.next(Subscribe)
        seen.refuse(ErrorCode.THROTTLED)
        again = await peer.next(Subscribe)
        assert (again.request_id, again.request) == (seen.request_id, seen.request)
        again.deliver(1, [b"x"])
        assert bytes((await first).body) == b"x"
        peer.polite = True
