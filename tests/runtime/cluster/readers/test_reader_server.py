"""A node's server for readers: with a ticket one partition is read, and nothing else is answered."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.runtime.clocks.clock import WallClock
from penstock.wire import reader_session
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.log_messages import LogAddress, LogSlice, ReadLog
from penstock.wire.messages import (
    DescribeNode,
    FindOffset,
    Hello,
    ListQueues,
    Ping,
    Purge,
    Request,
    Send,
    Welcome,
    decode_answer,
    encode_message,
)
from penstock.wire.read_ticket import LIFETIME_MS, TICKET_BYTES, TicketSeal
from tests.runtime.cluster.readers.cluster import SECRET, Readable, readable_cluster
from tests.runtime.cluster.readers.test_direct_reads import a_log
from tests.runtime.harness import async_test


class Visitor:
    """A client that sends any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameReader()

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    def show(self, ticket: bytes) -> None:
        self.say(b"".join(encode_frame(0, ticket)))

    def ask(self, request: Request) -> None:
        self.say(b"".join(encode_frame(7, encode_message(request))))

    async def answers(self) -> list[object]:
        """What comes next; empty: the connection was ended."""
        while True:
            try:
                data = await self._reader.read(65_536)
            except ConnectionResetError:
                return []
            if not data:
                return []
            if frames := self._frames.feed(data):
                return [decode_answer(frame.head) for frame in frames]

    async def leave(self) -> None:
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)


async def visitor(cluster: Readable) -> Visitor:
    address = cluster.node.reader_address
    assert address is not None
    return Visitor(*await asyncio.open_connection(address.host, address.port))


@async_test
async def test_a_ticket_lets_its_holder_read_the_partition(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster)
        place = await cluster.place(queue, 1)
        assert place.address == str(cluster.node.reader_address)
        assert not place.authority
        one = await visitor(cluster)
        one.show(place.ticket)
        (welcome,) = await one.answers()
        assert isinstance(welcome, Welcome)
        one.ask(ReadLog(place.partition_id, 1, 10))
        (answer,) = await one.answers()
        assert isinstance(answer, LogSlice)
        assert (answer.batches[0].first, answer.next) == (1, 11)
        await one.leave()


STRANGERS = {
    "nothing but zeros": bytes(4096),
    "another protocol": b"GET / HTTP/1.1\r\nHost: node\r\n\r\n",
    "a frame that is too long": b"".join(encode_frame(0, bytes(600))),
    "a frame with a wrong checksum": b"\x10\0\0\0" + bytes(12) + b"x" * 4,
    "a greeting": b"".join(encode_frame(1, encode_message(Hello([1], "me")))),
    "zeros as a ticket": b"".join(encode_frame(0, bytes(TICKET_BYTES))),
    "a ticket of another cluster": b"".join(
        encode_frame(0, TicketSeal(b"what others know").issue(1, WallClock().now_ms()))
    ),
    "a ticket that has ended": b"".join(
        encode_frame(0, TicketSeal(SECRET.encode()).issue(1, WallClock().now_ms() - LIFETIME_MS))
    ),
}


@async_test
async def test_strangers_are_cut_off_and_told_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with readable_cluster(tmp_path) as cluster:
        server = cluster.node.readers
        assert server is not None
        for count, said in enumerate(STRANGERS.values(), 1):
            one = await visitor(cluster)
            one.say(said)
            assert await one.answers() == []
            assert server.totals == (0, count, 0)
            await one.leave()
        assert caplog.text.count("refused 127.0.0.1") == 1  # clients cannot fill the log


@async_test
async def test_strangers_keep_no_reader_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_session, "MAX_STRANGERS", 3)
    async with readable_cluster(tmp_path) as cluster:
        place = await cluster.place(await a_log(cluster, 1))
        silent = [await visitor(cluster) for _ in range(3)]
        one = await visitor(cluster)
        one.show(place.ticket)
        assert len(await one.answers()) == 1
        assert await silent[0].answers() == []  # it has waited longest
        silent[1].show(place.ticket)
        assert len(await silent[1].answers()) == 1  # who has a ticket is no stranger
        silent += [await visitor(cluster) for _ in range(3)]
        assert await silent[2].answers() == []
        one.ask(Ping())
        assert len(await one.answers()) == 1
        for each in (*silent, one):
            await each.leave()


@async_test
async def test_who_says_nothing_is_cut_off(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path, hello_timeout_ms=50) as cluster:
        one = await visitor(cluster)
        assert await one.answers() == []
        await one.leave()


def beyond(place: LogAddress, other: LogAddress) -> list[Request]:
    """What a ticket for a place is not good for."""
    return [
        ReadLog(other.partition_id, 1),
        ReadLog(place.partition_id, 1, group="billing", member="me"),
        FindOffset(place.partition_id),
        Send(place.partition_id),
        Purge(place.partition_id),
        ListQueues(),
        DescribeNode(),
    ]


@async_test
async def test_a_ticket_is_good_for_nothing_else(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster)
        place, other = await cluster.place(queue, 0), await cluster.place(queue, 1)
        assert place.partition_id != other.partition_id
        for request in beyond(place, other):
            one = await visitor(cluster)
            one.show(place.ticket)
            assert len(await one.answers()) == 1
            one.ask(Ping())
            assert len(await one.answers()) == 1
            one.ask(request)
            assert await one.answers() == [], request
            await one.leave()
        assert len([message async for message in queue.log().messages()]) == 2_000


@async_test
async def test_the_connection_ends_with_the_ticket(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 1)
        place = await cluster.place(queue)
        assert cluster.node.readers is not None
        cluster.node.readers.now_ms = lambda: LIFETIME_MS - 100  # so long is left, whenever it is shown
        one = await visitor(cluster)
        one.show(TicketSeal(SECRET.encode()).issue(place.partition_id, 0))
        assert len(await one.answers()) == 1
        end = (await queue.log().bounds()).end
        one.ask(ReadLog(place.partition_id, end, wait_ms=60_000))
        assert await one.answers() == []
        await one.leave()


@async_test
async def test_a_ticket_of_a_queue_that_was_deleted_reads_nothing_of_the_next(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        before = await cluster.place(await a_log(cluster, 1))
        await cluster.client.delete_queue("clicks")
        after = await cluster.place(await a_log(cluster, 1))
        one = await visitor(cluster)
        one.show(before.ticket)
        assert len(await one.answers()) == 1
        one.ask(ReadLog(before.partition_id, 1))
        (answer,) = await one.answers()
        assert not isinstance(answer, LogSlice)
        one.ask(ReadLog(after.partition_id, 1))
        assert await one.answers() == []
        await one.leave()


def test_tickets_are_not_shown_where_answers_are() -> None:
    place = LogAddress("127.0.0.1:1", b"a secret", 5, "")
    assert "secret" not in repr(place)
    assert "secret" not in str(place)
