"""Stamping: which messages are stamped, with which time, and what happens when the time is uncertain."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from penstock import ErrorCode, OutgoingMessage, PenstockError, ProducerError, QueueSettings
from penstock.client.produce import stamping
from penstock.client.produce.stamping import plan_of
from penstock.model.batch import STAMPS, Batch
from penstock.ordering.timestamp_id import TimestampId
from penstock.wire.messages import Send
from tests.client.clock_peer import TRUE_US, WALL_US, clocked
from tests.client.peer import Seen, async_test
from tests.client.real import served

CAUSAL = QueueSettings(ordering="causal")
BY_PRODUCERS = QueueSettings(ordering="clock", stamps="producer", max_uncertainty_ms=1)
HOLDING = QueueSettings(ordering="clock", stamps="producer", max_uncertainty_ms=1, when_uncertain="hold")


def ids_of(seen: Seen[Send]) -> list[TimestampId]:
    """The timestamp ids of the messages of a send, as the server reads them."""
    head, batch = seen.request, Batch(seen.body)
    column = batch.integers(STAMPS)
    times = [head.time_us] * batch.count if column is None else list(column)
    return [TimestampId(time_us, head.process, head.counter + i) for i, time_us in enumerate(times)]


@pytest.mark.parametrize(
    ("settings", "wanted", "synchronized"),
    [
        (QueueSettings(), None, None),
        (QueueSettings(), True, True),
        (QueueSettings(ordering="fifo"), None, None),
        (QueueSettings(ordering="clock"), None, None),
        (QueueSettings(ordering="clock"), True, None),  # the server stamps it
        (CAUSAL, None, False),
        (CAUSAL, False, None),
        (BY_PRODUCERS, None, True),
        (BY_PRODUCERS, False, None),
    ],
)
def test_which_messages_are_stamped_and_by_which_clock(
    settings: QueueSettings, wanted: bool | None, synchronized: bool | None
) -> None:
    plan = plan_of(settings, wanted)
    assert (None if plan is None else plan.synchronized) == synchronized


@async_test
async def test_messages_to_an_ordinary_queue_are_not_stamped() -> None:
    async with clocked() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send_batch([b"a", b"b"]))
        seen = await peer.next_send()
        assert seen.request == Send(7, seen.request.producer, 1)
        assert Batch(seen.body).columns == 0
        seen.stored()
        await sending


@async_test
async def test_a_causal_queue_gets_the_sessions_own_time_and_the_server_is_not_asked_for_it() -> None:
    async with clocked() as (peer, client):
        peer.settings = CAUSAL
        queue = client.queue("orders")
        processes = set()
        for number in range(3):
            peer.hands.reading_us += 1_000
            sending = asyncio.ensure_future(queue.send_batch([b"a", b"b"]))
            seen = await peer.next_send()
            assert ids_of(seen) == [
                (WALL_US + 1_000 * (number + 1), seen.request.process, 2 * number),
                (WALL_US + 1_000 * (number + 1), seen.request.process, 2 * number + 1),
            ]
            assert seen.request.uncertainty_us == 0
            assert not Batch(seen.body).columns & STAMPS  # one time for all needs no column
            processes.add(seen.request.process)
            seen.stored()
            await sending
        assert len(processes) == 1
        assert peer.readings == 0


@async_test
async def test_a_clock_queue_gets_the_servers_time_though_the_wall_clock_is_an_hour_off() -> None:
    async with clocked() as (peer, client):
        peer.settings = BY_PRODUCERS
        sending = asyncio.ensure_future(client.queue("orders").send(b"a"))
        seen = await peer.next_send()
        assert abs(seen.request.time_us - TRUE_US) <= seen.request.uncertainty_us
        assert 100 <= seen.request.uncertainty_us <= 1_000
        seen.stored()
        await sending


@async_test
async def test_a_producer_stamps_each_message_with_the_time_at_which_it_was_taken() -> None:
    async with clocked() as (peer, client):
        peer.settings = CAUSAL
        async with client.queue("orders").producer(linger=10) as producer:
            for number in range(3):
                await producer.send(b"%d" % number)
                peer.hands.reading_us += 500
            flushing = asyncio.ensure_future(producer.flush())
            seen = await peer.next_send()
            first, second, third = ids_of(seen)
            assert [second.time_us - first.time_us, third.time_us - second.time_us] == [500, 500]
            assert first.time_us == WALL_US
            assert Batch(seen.body).bodies() == [b"0", b"1", b"2"]
            seen.stored()
            await flushing
            await producer.send_many([b"3", "4"])
            flushing = asyncio.ensure_future(producer.flush())
            seen = await peer.next_send()
            assert ids_of(seen)[0] > third
            seen.stored()
            await flushing


@async_test
async def test_a_producer_asks_for_the_time_before_its_first_batch_leaves() -> None:
    async with clocked() as (peer, client):
        peer.settings = BY_PRODUCERS
        async with client.queue("orders").producer() as producer:
            await producer.send(b"a")
            peer.hands.reading_us += 300
            await producer.send(b"b")
            seen = await peer.next_send()
            assert peer.readings >= 1
            first, second = ids_of(seen)
            assert second.time_us - first.time_us == 300
            assert abs(first.time_us - TRUE_US) <= seen.request.uncertainty_us
            seen.stored()


@async_test
async def test_a_batch_sent_again_keeps_its_stamps() -> None:
    async with clocked() as (peer, client):
        peer.settings = BY_PRODUCERS
        sending = asyncio.ensure_future(client.queue("orders").send_batch([b"a"]))
        first = await peer.next_send()
        peer.hands.reading_us += 700
        peer.cut()
        second = await peer.next_send()
        assert ids_of(second) == ids_of(first)
        second.stored()
        await sending


@async_test
async def test_a_producers_batch_keeps_its_stamps_when_the_queue_was_made_again() -> None:
    async with clocked() as (peer, client):
        peer.settings = CAUSAL
        async with client.queue("orders").producer(linger=10) as producer:
            await producer.send(b"a")
            peer.hands.reading_us += 100
            await producer.send(b"b")
            flushing = asyncio.ensure_future(producer.flush())
            first = await peer.next_send()
            peer.queues["orders"] = 8
            peer.hands.reading_us += 5_000
            first.refuse(ErrorCode.QUEUE_NOT_FOUND)
            second = await peer.next_send()
            assert second.request.queue_id == 8
            assert ids_of(second) == ids_of(first)
            second.stored()
            await flushing


@async_test
async def test_messages_bring_their_own_times_along() -> None:
    async with clocked() as (peer, client):
        peer.settings = BY_PRODUCERS
        queue = client.queue("orders")
        when = datetime(2026, 3, 1, 12, tzinfo=UTC)
        when_us = round(when.timestamp()) * 1_000_000
        sending = asyncio.ensure_future(queue.send(b"a", timestamp=when))
        seen = await peer.next_send()
        assert (seen.request.time_us, seen.request.uncertainty_us, peer.readings) == (when_us, 0, 0)
        seen.stored()
        await sending
        sending_batch = asyncio.ensure_future(
            queue.send_batch([OutgoingMessage(b"b", timestamp=2.5), OutgoingMessage(b"c")])
        )
        seen = await peer.next_send()
        own, made = ids_of(seen)
        assert own.time_us == 2_500_000
        assert abs(made.time_us - TRUE_US) <= seen.request.uncertainty_us
        seen.stored()
        await sending_batch


@async_test
async def test_an_ordinary_queue_takes_times_and_stamps_too() -> None:
    async with clocked() as (peer, client):
        queue = client.queue("orders")
        sending = asyncio.ensure_future(queue.send(b"a", timestamp=2.5))
        seen = await peer.next_send()
        assert seen.request.time_us == 2_500_000
        seen.stored()
        await sending
        async with queue.producer(stamp=True) as producer:
            await producer.send(b"b")
            seen = await peer.next_send()
            assert abs(seen.request.time_us - TRUE_US) <= seen.request.uncertainty_us
            seen.stored()
        async with queue.producer() as producer:
            await producer.send(OutgoingMessage(b"c", timestamp=3.5))
            seen = await peer.next_send()
            assert seen.request.time_us == 3_500_000
            seen.stored()


@pytest.mark.parametrize(
    ("timestamp", "sentence"),
    [
        (datetime(2026, 3, 1, 12), "without a time zone"),  # noqa: DTZ001  # what is wrong is the test
        (-1.0, "after 1970"),
        (0, "after 1970"),
        (float("nan"), "after 1970"),
        (1e300, "before the year 4253"),
    ],
)
def test_a_time_that_is_none_is_refused(timestamp: datetime | float, sentence: str) -> None:
    async def send() -> None:
        async with clocked() as (peer, client):
            with pytest.raises(PenstockError, match=sentence):
                await client.queue("orders").send(b"a", timestamp=timestamp)
            with pytest.raises(PenstockError, match=sentence):
                await client.queue("orders").send_batch([OutgoingMessage(b"a", timestamp=timestamp)])
            assert peer.quiet()

    asyncio.run(send())


# -- uncertainty ---------------------------------------------------------------------------------------------


@async_test
async def test_a_time_too_uncertain_is_refused_with_what_to_do_about_it() -> None:
    async with clocked() as (peer, client):
        peer.settings = BY_PRODUCERS
        peer.error_us = 4_000
        queue = client.queue("orders")
        with pytest.raises(PenstockError, match=r"only to 4\.1\d\d ms, and 'orders' demands 1 ms") as refused:
            await queue.send(b"a")
        assert refused.value.code is ErrorCode.CLOCK_UNCERTAIN
        producer = queue.producer()
        ticket = await producer.send(b"b")
        with pytest.raises(PenstockError, match="demands 1 ms"):
            await ticket
        with pytest.raises(ProducerError, match="1 messages in 1 batches were not stored"):
            await producer.flush()
        peer.error_us = 0
        sending = asyncio.ensure_future(queue.send(b"c"))
        (await peer.next_send()).stored()
        await sending


@async_test
async def test_a_queue_that_holds_has_messages_wait_until_the_time_is_certain_enough() -> None:
    seconds, stamping.HOLD_SECONDS = stamping.HOLD_SECONDS, 0.001
    try:
        async with clocked() as (peer, client):
            peer.settings = HOLDING
            peer.error_us = 4_000
            queue = client.queue("orders")
            sending = asyncio.ensure_future(queue.send(b"a"))
            async with queue.producer() as producer:
                await producer.send(b"b")
                asked = peer.readings
                await peer.until(lambda: peer.readings > asked + 20)
                assert peer.quiet()
                peer.error_us = 10
                for seen in (await peer.next_send(), await peer.next_send()):
                    assert seen.request.uncertainty_us <= 1_000
                    # Stamped with when it was made, not with when it could be sent.
                    assert abs(ids_of(seen)[0].time_us - TRUE_US) <= 2_000
                    seen.stored()
            await sending
    finally:
        stamping.HOLD_SECONDS = seconds


@async_test
async def test_a_producer_that_brings_its_times_along_needs_no_certain_time() -> None:
    async with clocked() as (peer, client):
        peer.settings = BY_PRODUCERS
        peer.error_us = None
        async with client.queue("orders").producer() as producer:
            await producer.send(OutgoingMessage(b"a", timestamp=2.5))
            seen = await peer.next_send()
            assert seen.request.time_us == 2_500_000
            seen.stored()


@async_test
async def test_a_stamp_made_when_the_time_was_uncertain_does_not_push_later_ones_beyond_their_bounds() -> (
    None
):
    async with clocked() as (peer, client):
        peer.settings = BY_PRODUCERS
        peer.lead_us = 4_000_000
        ahead = await client.timestamp_id()
        assert ahead.time_us - peer.true_us() > 1_900_000
        peer.lead_us = 0
        sending = asyncio.ensure_future(client.queue("orders").send(b"a"))
        seen = await peer.next_send()
        assert seen.request.uncertainty_us <= 1_000
        assert abs(seen.request.time_us - peer.true_us()) <= 2_000
        assert seen.request.process != ahead.process
        seen.stored()
        await sending


# -- against a real server -----------------------------------------------------------------------------------


@async_test
async def test_messages_tell_their_stamps_and_late_ones_how_late_they_were() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("events", ordering="clock", stamps="producer", window=0)
        await queue.send(b"on time")
        (message,) = await queue.receive(wait=20)
        assert message.timestamp_id is not None
        assert message.stamped_at is not None
        assert message.late is None
        await message.delete()
        await queue.send(b"an hour late", timestamp=message.timestamp_id.time_us / 1e6 - 3_600)
        late_queue = client.queue("events.late")
        (late,) = await late_queue.receive(wait=20)
        assert late.body == b"an hour late"
        assert late.late is not None
        assert abs(late.late.lateness.total_seconds() - 3_600) < 0.001
        assert late.late.window_needed is not None
        assert late.late.window_needed >= late.late.lateness
        assert late.late.should_have_preceded == message.timestamp_id
        assert late.dead_letter is not None
        assert (late.dead_letter.reason, late.dead_letter.source) == ("late", "events")


@async_test
async def test_the_servers_stamp_is_told_to_who_sent_and_to_who_receives() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("events", ordering="clock")
        first, second = await queue.send(b"a"), await queue.send(b"b")
        assert first.stamped_at is not None
        assert second.stamped_at is not None
        assert first.stamped_at < second.stamped_at
        (message,) = await queue.receive(1, wait=20)
        assert message.stamped_at == first.stamped_at


@async_test
async def test_batches_that_wait_for_room_do_not_overtake_each_other() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders", ordering="clock", stamps="producer", window=0)
        batch = [bytes(64 * 1024)] * 16
        waves = 4

        async def send_some() -> None:
            for _ in range(waves):
                await queue.send_batch(batch)

        await asyncio.gather(*(send_some() for _ in range(12)))
        statistics = (await queue.describe()).statistics
        assert statistics.sent_total == 12 * waves * len(batch)
        assert statistics.late_total == 0
