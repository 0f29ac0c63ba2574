"""No holder of tickets takes all of a node's server for readers: reads that wait and connections are bounded for each holder of tickets."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.errors import ErrorCode
from penstock.runtime.clocks.clock import WallClock
from penstock.wire import reader_waits
from penstock.wire.frames import encode_frame
from penstock.wire.log_messages import LogSlice, ReadLog
from penstock.wire.messages import Done, Failed, Ping, encode_message
from penstock.wire.read_ticket import Holder, TicketError, TicketSeal, encode_holder
from penstock.wire.reader_waits import ReaderWaits
from tests.runtime.cluster.readers.cluster import SECRET, Readable, readable_cluster
from tests.runtime.cluster.readers.test_direct_reads import MESSAGES, a_log
from tests.runtime.cluster.readers.test_reader_server import Visitor, visitor
from tests.runtime.harness import async_test, until


def written(*request_ids: int) -> list[bytes | bytearray | memoryview]:
    return [piece for request_id in request_ids for piece in encode_frame(request_id, encode_message(Done()))]


def test_a_connection_and_a_holder_have_room_for_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_waits, "READS_A_CONNECTION", 3)
    monkeypatch.setattr(reader_waits, "READS_A_HOLDER", 5)
    waits = ReaderWaits()
    one, two, other = waits.begin("ada"), waits.begin("ada"), waits.begin("eve")
    assert [one.admit(number) for number in range(5)] == [True, True, True, False, False]
    assert [two.admit(number) for number in range(5)] == [True, True, False, False, False]
    assert other.admit(1)
    one.answered(written(0, 2, 9))
    assert [two.admit(number) for number in range(5, 8)] == [True, False, False]
    assert one.admit(0)
    one.end()
    assert not two.admit(9), "its own bound holds whatever others do"
    two.answered(written(0))
    assert two.admit(9)
    two.end()
    other.end()
    assert len(waits) == 0


def test_an_id_is_used_for_one_read_at_a_time() -> None:
    reads = ReaderWaits().begin("ada")
    assert reads.admit(7)
    with pytest.raises(TicketError, match="the id of a read"):
        reads.admit(7)
    reads.answered(written(7))
    assert reads.admit(7)


def test_a_holder_has_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_waits, "CONNECTIONS_A_HOLDER", 2)
    waits = ReaderWaits()
    first, _ = waits.begin("ada"), waits.begin("ada")
    with pytest.raises(TicketError, match="too many connections"):
        waits.begin("ada")
    waits.begin("eve")
    first.end()
    waits.begin("ada")


async def let_in(cluster: Readable, partition: int, user: str) -> Visitor:
    """A client with a ticket of a user."""
    holder = encode_holder(Holder("000000000000", user, "arn:aws:sqs:us-east-1:000000000000:clicks"))
    one = await visitor(cluster)
    one.show(TicketSeal(SECRET.encode()).issue(partition, WallClock().now_ms(), holder))
    assert len(await one.answers()) == 1
    return one


def waits(partition: int, *request_ids: int) -> bytes:
    """Reads at the end of the log."""
    message = encode_message(ReadLog(partition, MESSAGES + 1, wait_ms=20_000))
    return b"".join(piece for one in request_ids for piece in encode_frame(one, message))


async def refusals(one: Visitor, count: int) -> None:
    """So many answers come, and all are refusals that may be tried again."""
    found: list[object] = []
    while len(found) < count:
        answers = await one.answers()
        assert answers, "the connection was ended"
        found += answers
    assert [isinstance(answer, Failed) and answer.code for answer in found] == [
        ErrorCode.TOO_MANY_WAITING
    ] * count


@async_test
async def test_what_is_too_much_is_refused_at_once_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_waits, "READS_A_CONNECTION", 3)
    monkeypatch.setattr(reader_waits, "READS_A_HOLDER", 4)
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 1)
        partition = (await cluster.place(queue)).partition_id
        greedy, again = await let_in(cluster, partition, "eve"), await let_in(cluster, partition, "eve")
        greedy.say(waits(partition, *range(1, 7)))
        await refusals(greedy, 3)
        again.say(waits(partition, 1, 2))
        await refusals(again, 1)
        other = await let_in(cluster, partition, "ada")
        other.ask(ReadLog(partition, 1, 10))
        (answer,) = await other.answers()
        assert isinstance(answer, LogSlice)
        assert answer.batches
        await greedy.leave()  # and with it go its reads
        server = cluster.node.readers
        assert server is not None
        await until(lambda: server.totals.readers == 2)
        again.say(waits(partition, 3, 4))
        again.ask(Ping())
        await refusals(again, 1)
        await queue.send(b"something new")
        answers = await again.answers()
        assert all(isinstance(one, LogSlice) for one in answers)
        for one in (again, other):
            await one.leave()
        await until(lambda: len(server.sessions.waits) == 0)


@async_test
async def test_an_id_that_is_in_use_ends_the_connection(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        partition = (await cluster.place(await a_log(cluster, 1))).partition_id
        one = await let_in(cluster, partition, "eve")
        one.say(waits(partition, 7, 7))
        assert await one.answers() == []
        await one.leave()
