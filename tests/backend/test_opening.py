"""A state that does not stand where the journal ends is fenced when a node opens its data, and stays fenced."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from penstock.backend.node.environment import Environment
from penstock.backend.node.node import Node
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.entry import OFFSET_MASK, POSITION_SHIFT
from penstock.storage.errors import StorageDamagedError
from penstock.storage.identity import Identity
from penstock.storage.journal_file import journal_name
from penstock.storage.options import StorageOptions
from penstock.storage.recovery import Entry, JournalTail
from penstock.storage.store import Store
from penstock.wire import messages
from penstock.wire.frames import Frame, FrameReader

NOW_MS = 1_700_000_000_000
OPTIONS = StorageOptions(
    journal_file_bytes=64 * 1024, entry_bytes_max=16 * 1024, free_bytes_min=0, checkpoint_journal_bytes=2**30
)


class Server:
    """A node alone over a simulated disk; every turn is carried out at once."""

    def __init__(self, disk: SimulatedDisk, options: StorageOptions = OPTIONS) -> None:
        self.disk = disk
        self.store = Store.open(disk, options, Identity("node", b"s" * 32))
        self.node = Node(self.store, Environment("0", "/simulated", lambda: (0.0, 0)), NOW_MS)
        self.node.connected(1)
        self._number = 0
        self._reader = FrameReader()
        self.ask(messages.Hello([1], "test"))

    def ask(self, request: messages.Request, body: bytes = b"") -> messages.Answer:
        self._number += 1
        head = memoryview(messages.encode_message(request))
        self.node.handle(1, Frame(self._number, head, memoryview(body)), NOW_MS)
        for _ in range(20):
            self.turn()
            for _, buffers in self.node.take_output():
                for frame in self._reader.feed(b"".join(buffers)):
                    if frame.request_id == self._number:
                        return messages.decode_answer(frame.head)
        raise AssertionError(f"no answer to {request}")

    def turn(self) -> None:
        flush = self.node.take_flush()
        if flush is not None:
            flush.run()
            self.node.flushed(flush, NOW_MS)
        for job in self.node.take_jobs():
            job.run()
            self.node.job_done(job, NOW_MS)

    def checkpoint(self) -> None:
        self.store.checkpoint_due = lambda now_ms: True  # type: ignore[method-assign]  # of this store alone
        self.turn()
        self.store.checkpoint_due = lambda now_ms: False  # type: ignore[method-assign]  # of this store alone
        for _ in range(20):
            self.turn()
        assert not self.node._checkpointer.is_under_way

    def restarted(self) -> Server:
        return Server(self.disk.crash())

    @property
    def damage(self) -> dict[int, str]:
        return self.node._parts.catalogue.damage


def filled() -> tuple[Server, int]:
    server = Server(SimulatedDisk(random.Random(1)))
    made = server.ask(messages.CreateQueue("orders", QueueSettings()))
    assert isinstance(made, messages.QueueDescription)
    for number in range(3):
        server.ask(messages.Send(made.queue_id), encode_parts([b"%d" % number]))
    return server, made.queue_id


def without_the_last(monkeypatch: pytest.MonkeyPatch, partition: int) -> None:
    """Recovery loses the last record of a partition on its way to the node, as a defect of it might."""
    real = JournalTail.entries

    def entries(self: JournalTail) -> Iterator[Entry]:
        last = max((entry.index for entry in real(self) if entry.partition == partition), default=0)
        for entry in real(self):
            if (entry.partition, entry.index) != (partition, last):
                yield entry

    monkeypatch.setattr(JournalTail, "entries", entries)


def test_a_state_that_ends_before_the_journal_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    server, queue_id = filled()
    with monkeypatch.context() as planted:
        without_the_last(planted, queue_id)
        server = server.restarted()
    assert list(server.damage) == [queue_id]
    assert "its state ends at record 2, and the journal at 3" in server.damage[queue_id]
    answer = server.ask(messages.Receive(queue_id, 10))
    assert isinstance(answer, messages.Failed)
    assert answer.code == ErrorCode.QUEUE_DAMAGED


def test_what_was_fenced_at_a_start_is_not_a_good_state_in_the_next_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, queue_id = filled()
    with monkeypatch.context() as planted:
        without_the_last(planted, queue_id)
        server = server.restarted()
    server.ask(messages.CreateQueue("another", QueueSettings()))
    server.checkpoint()
    server = server.restarted()
    assert list(server.damage) == [queue_id]
    server.ask(messages.CreateQueue("a third", QueueSettings()))
    server.checkpoint()
    assert list(server.restarted().damage) == [queue_id]


def test_a_catalogue_that_ends_before_the_journal_is_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = filled()
    without_the_last(monkeypatch, 0)
    with pytest.raises(StorageDamagedError, match="it ends at record 0 instead of 1"):
        server.restarted()


def test_a_whole_journal_fences_nothing() -> None:
    server, queue_id = filled()
    server.checkpoint()
    server.ask(messages.Send(queue_id), encode_parts([b"after it"]))
    server = server.restarted()
    assert not server.damage
    answer = server.ask(messages.Receive(queue_id, 10))
    assert isinstance(answer, messages.Delivery)
    assert sum(head.count for head in answer.batches) == 4


def test_a_queue_whose_only_messages_cannot_be_read_is_fenced_and_not_taken_for_empty() -> None:
    server, orders = filled()
    made = server.ask(messages.CreateQueue("invoices", QueueSettings()))
    assert isinstance(made, messages.QueueDescription)
    server.ask(messages.Send(made.queue_id), encode_parts([b"the only one"]))
    position = next(
        iter(server.node._parts.catalogue.partitions[made.queue_id].table.chunks.values())
    ).positions[0]
    server.ask(messages.CreateQueue("made-later", QueueSettings()))
    # Made behind the damage, without any record; and another flush proves that the message was on disk.
    server.ask(messages.CreateQueue("made-last", QueueSettings()))
    server.disk.flip_bit(journal_name(position >> POSITION_SHIFT), (position & OFFSET_MASK) + 4, 3)
    for _ in range(2):
        server = server.restarted()
        assert "it cannot be shown that no record of this partition was there" in server.damage[made.queue_id]
        assert list(server.damage) == [orders, made.queue_id]
        answer = server.ask(messages.Send(made.queue_id), encode_parts([b"one more"]))
        assert isinstance(answer, messages.Failed)
        assert answer.code == ErrorCode.QUEUE_DAMAGED
        server.checkpoint()
