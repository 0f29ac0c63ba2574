"""The client's clock: what exchanges with the server tell, when it asks, and ids by it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

import penstock
from penstock import BlockingMessage, ErrorCode, LocalClock, PenstockError
from penstock.client.produce import clock
from penstock.wire.messages import TakeIds, TakenIds
from tests.client.clock_peer import TRUE_US, clocked
from tests.client.peer import async_test
from tests.client.real import restartable, served, served_in_a_thread


@async_test
async def test_the_offset_and_its_uncertainty_come_from_round_trips_and_the_servers_own_bound() -> None:
    async with clocked() as (peer, client):
        peer.error_us = 30
        status = await client.clock()
        assert status.earliest_us <= peer.true_us() <= status.latest_us
        assert 100 + 30 <= status.uncertainty_us <= 100 + 30 + 5
        assert abs(status.offset_us - 3_600_000_000) <= status.uncertainty_us
        assert status.offset == timedelta(microseconds=status.offset_us)
        assert abs(status.now - datetime.fromtimestamp(peer.true_us() / 1e6, UTC)) <= status.uncertainty
        assert (status.round_trip_us, status.source, status.drift_ppm) == (200, "chrony", 200)
        assert status.server_uncertainty_us == 30


@async_test
async def test_the_quickest_exchange_counts() -> None:
    async with clocked() as (peer, client):
        peer.round_trip_us = 50_000
        assert (await client.clock()).uncertainty_us >= 25_000
        peer.round_trip_us = 100
        status = await client.clock()
        assert status.uncertainty_us < 60
        assert status.earliest_us <= peer.true_us() <= status.latest_us


@async_test
async def test_nobody_asks_for_the_time_before_somebody_wants_to_know_it() -> None:
    async with clocked() as (peer, client):
        peer.polite = True
        await client.queue("orders").send(b"plain")
        async with client.queue("orders").producer() as producer:
            await producer.send(b"plain")
        assert peer.readings == 0


@async_test
async def test_a_server_whose_clock_drifts_more_makes_the_client_allow_for_more() -> None:
    async with clocked() as (peer, client):
        peer.drift_ppm = 500
        assert (await client.clock()).drift_ppm == 500


@async_test
async def test_a_server_that_does_not_know_the_time_is_no_use() -> None:
    async with clocked() as (peer, client):
        peer.error_us = None
        with pytest.raises(PenstockError, match="the server does not know the time yet") as refused:
            await client.clock()
        assert refused.value.code is ErrorCode.CLOCK_UNCERTAIN
        with pytest.raises(PenstockError, match="the server does not know the time yet"):
            await client.timestamp_id()
        peer.error_us = 0
        assert await client.timestamp_id()


@async_test
async def test_the_time_is_asked_for_again_while_it_is_in_use_and_left_alone_after() -> None:
    seconds, idle = clock.REFRESH_SECONDS, clock.IDLE_SECONDS
    clock.REFRESH_SECONDS, clock.IDLE_SECONDS = 0.001, 0.05
    try:
        async with clocked() as (peer, client):
            await client.timestamp_id()
            await peer.until(lambda: peer.readings > clock.FIRST_EXCHANGES)
            refreshing = client._clock._refreshing
            assert refreshing is not None
            await refreshing  # it ends by itself
            asked = peer.readings
            await client.timestamp_id()
            await peer.until(lambda: peer.readings > asked)
    finally:
        clock.REFRESH_SECONDS, clock.IDLE_SECONDS = seconds, idle


@async_test
async def test_ids_are_made_here_and_rise_though_the_local_clock_stands_still() -> None:
    async with clocked() as (peer, client):
        first = await client.timestamp_id()
        asked = peer.readings
        others = await client.sequencer.take(1_000)
        assert peer.readings == asked
        ids = [first, *others, await client.timestamp_id()]
        assert ids == sorted(set(ids))
        assert len({identifier.process for identifier in ids}) == 1
        assert abs(first.time_us - peer.true_us()) <= 150
        assert first.time_us > TRUE_US


@pytest.mark.parametrize("count", [0, 100_001])
def test_ids_are_taken_in_reasonable_numbers(count: int) -> None:
    async def take() -> None:
        async with clocked() as (_, client):
            with pytest.raises(PenstockError, match="take 1 to 100000"):
                await client.sequencer.take(count)

    asyncio.run(take())


@async_test
async def test_ids_of_the_server_are_its_own() -> None:
    async with clocked() as (peer, client):
        taking = asyncio.ensure_future(client.take_ids(3))
        seen = await peer.next(TakeIds)
        assert seen.request.count == 3
        seen.answer(TakenIds(TRUE_US, 9, 41, 3, 0))
        assert await taking == [(TRUE_US, 9, 41), (TRUE_US, 9, 42), (TRUE_US, 9, 43)]


@async_test
async def test_a_real_server_tells_the_time_and_gives_ids() -> None:
    async with served() as (_, client):
        status = await client.clock()
        assert status.source == "own"
        assert status.server_uncertainty_us == 0
        assert abs(status.offset_us) <= status.uncertainty_us + 1_000_000
        first, second = await client.take_ids(2)
        assert first < second < (await client.take_ids())[0]
        made = await client.timestamp_id()
        assert abs(made.time_us - first.time_us) < 10_000_000


@async_test
async def test_two_clients_with_clocks_an_hour_apart_agree_on_the_time() -> None:
    slow = LocalClock(lambda: time.time_ns() // 1000 - 3_600_000_000, lambda: time.monotonic_ns() // 1000 + 7)
    async with served() as (server, client), penstock.connect(server.url, local_clock=slow) as other:
        one, two = await client.clock(), await other.clock()
        assert two.offset_us - one.offset_us > 3_000_000_000
        later = await client.clock()
        # What each allows for the time of the server overlaps with what the other does.
        assert one.earliest_us <= two.latest_us
        assert two.earliest_us <= later.latest_us


def test_the_blocking_client_knows_the_time_too() -> None:
    with served_in_a_thread() as url, penstock.connect_blocking(url) as client:
        assert client.clock().source == "own"
        ids = [client.timestamp_id(), *client.timestamp_ids(3), client.timestamp_id()]
        assert ids == sorted(set(ids))
        assert len(client.take_ids(2)) == 2
        queue = client.create_queue("events", ordering="causal", window=0)
        queue.send(b"a", timestamp=2.5)
        queue.send_batch([b"b"], stamp=True)
        with queue.producer(stamp=True) as producer:
            producer.send(b"c")
        received: list[BlockingMessage] = []
        while len(received) < 3:
            messages = queue.receive(wait=20)
            received += messages
            messages.delete()
        assert [message.body for message in received] == [b"a", b"b", b"c"]
        assert received[0].stamped_at == datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)
        stamps = [message.timestamp_id for message in received]
        assert None not in stamps
        assert received[0].late is None


@async_test
async def test_a_server_that_was_started_again_gives_ids_of_another_process_and_goes_on_in_time() -> None:
    async with restartable() as server, penstock.connect(server.url) as client:
        queue = await client.create_queue("events", ordering="clock")
        stamp_us = (await queue.send(b"a")).stamp_us
        before = await client.take_ids(3)
        await server.stop()
        await server.start()
        after = await client.take_ids(3)
        assert before[-1] < after[0]
        assert before[0].process != after[0].process
        assert (await queue.send(b"b")).stamp_us > stamp_us
