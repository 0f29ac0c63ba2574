"""A disk that put a whole entry at the wrong place: the queue is fenced, and no consumer gets other bytes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.entry import OFFSET_MASK, POSITION_SHIFT
from penstock.storage.journal_file import journal_name
from penstock.wire import messages
from tests.backend.test_opening import OPTIONS, Server

BODIES = (b"first body", b"other body")


def two_queues() -> tuple[Server, list[int]]:
    """One message in each of two queues, and a third that pushes them out of the cache; entries of the same size."""
    server = Server(SimulatedDisk(random.Random(1)), replace(OPTIONS, cache_bytes=0))
    queues = []
    for name in ("first", "other"):
        made = server.ask(messages.CreateQueue(name, QueueSettings()))
        assert isinstance(made, messages.QueueDescription)
        queues.append(made.queue_id)
    return server, queues


def position_of(server: Server, partition_id: int, sequence: int) -> int:
    table = server.node._parts.catalogue.partitions[partition_id].table
    return next(iter(table.chunks.values())).positions[sequence - 1]


def misdirect(server: Server, source: int, target: int) -> None:
    """The entry at one position is written over that at another."""
    name = journal_name(source >> POSITION_SHIFT)
    start, at = source & OFFSET_MASK, target & OFFSET_MASK
    size = abs(target - source)
    server.disk.open(name).write_at(at, [server.disk.contents(name)[start : start + size]])


def test_a_consumer_never_gets_the_bytes_of_another_queue() -> None:
    server, (first, other) = two_queues()
    for queue_id, body in ((first, BODIES[0]), (other, BODIES[1]), (other, b"the newest")):
        server.ask(messages.Send(queue_id), encode_parts([body]))
    misdirect(server, position_of(server, other, 1), position_of(server, first, 1))
    answer = server.ask(messages.Receive(first, 1))
    assert isinstance(answer, messages.Failed)
    assert answer.code == ErrorCode.QUEUE_DAMAGED
    assert list(server.damage) == [first]


@pytest.mark.parametrize("read", [messages.Receive, messages.Peek])
def test_a_consumer_never_gets_another_message_of_the_same_queue(read: type) -> None:
    server, (first, _) = two_queues()
    for body in (*BODIES, b"the newest"):
        server.ask(messages.Send(first), encode_parts([body]))
    misdirect(server, position_of(server, first, 2), position_of(server, first, 1))
    request = messages.Receive(first, 1) if read is messages.Receive else messages.Peek(first, 1, 1)
    answer = server.ask(request)
    assert isinstance(answer, messages.Failed), answer
    assert answer.code == ErrorCode.QUEUE_DAMAGED
    assert "another batch is there" in server.damage[first]


def test_a_reader_of_a_log_never_gets_another_batch() -> None:
    server = Server(SimulatedDisk(random.Random(1)), replace(OPTIONS, cache_bytes=0))
    made = server.ask(messages.CreateQueue("events", QueueSettings(consumption="log")))
    assert isinstance(made, messages.QueueDescription)
    for body in (*BODIES, b"the newest"):
        server.ask(messages.Send(made.queue_id), encode_parts([body]))
    log = server.node._parts.catalogue.partitions[made.queue_id].log
    assert log is not None
    first, second, _ = log.batches(1, 10, 10_000, 10)
    misdirect(server, second.position, first.position)
    answer = server.ask(messages.ReadLog(made.queue_id, 1))
    assert isinstance(answer, messages.Failed)
    assert answer.code == ErrorCode.QUEUE_DAMAGED
    assert list(server.damage) == [made.queue_id]
