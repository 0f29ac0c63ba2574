"""Checkpoints that take many turns, with requests in between: a restart at any time finds what was there before it."""

from __future__ import annotations

from random import Random

import pytest

from penstock.backend.upkeep import checkpoints
from penstock.model import limits
from penstock.queue.partition import Partition
from penstock.simulation.partition_state import differences, inconsistencies
from penstock.wire import messages
from tests.backend.harness import OPTIONS, NodeHarness, Received


class BusyNode(NodeHarness):
    """Does one round of work for each request, as a busy server does; `settle` does all of it."""

    def turn(self) -> None:
        self.flush()
        for job in self.node.take_jobs():
            job.run()
            self.node.job_done(job, self.now_ms)
        self.flush()
        self._collect()

    def flush(self) -> None:
        flush = self.node.take_flush()
        if flush is not None:
            flush.run()
            self.node.flushed(flush, self.now_ms)

    def settle(self) -> None:
        super().turn()

    @property
    def partitions(self) -> dict[int, Partition]:
        return self.node._parts.catalogue.partitions

    def is_checkpointing(self) -> bool:
        return self.node._checkpointer.is_under_way


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_ROWS", 2)
    monkeypatch.setattr(limits, "CAPTURE_PAGES", 4)
    monkeypatch.setattr(checkpoints, "_PLACES_PER_TURN", 3)
    monkeypatch.setattr(checkpoints, "_POSITIONS_PER_COPY", 4)
    monkeypatch.setattr(checkpoints, "_PARTITION_PLACES", 1)


class History:
    """Random requests of a few queues."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.node = BusyNode()
        self.queues: dict[str, int] = {}
        self.received: list[Received] = []
        self.made = 0
        for _ in range(3):
            self.create()

    def create(self) -> None:
        self.made += 1
        name = f"queue-{self.made}"
        self.queues[name] = self.node.create(
            name,
            ordering=self.dice.choice(["best-effort", "fifo"]),
            consumption=self.dice.choice(["queue", "queue", "both"]),
            visibility_timeout_ms=60_000,
        )

    def step(self) -> None:
        dice, node = self.dice, self.node
        name = dice.choice(list(self.queues))
        queue_id = self.queues[name]
        what = dice.random()
        if what < 0.45:
            bodies = [dice.randbytes(dice.choice([10, 2_000])) for _ in range(dice.randint(1, 5))]
            groups = [dice.choice([b"", b"a", b"b"]) for _ in bodies]
            ids = [dice.choice([b"", b"%d" % dice.randrange(40)]) for _ in bodies]
            producer = dice.randint(1, 4)
            node.send(
                queue_id, bodies, groups=groups, deduplication_ids=ids, producer=producer, number=self.made
            )
            self.made += 1
        elif what < 0.70:
            found = node.receive(queue_id, dice.randint(1, 6))
            if found.bodies:
                self.received.append(found)
        elif what < 0.93:
            if self.received:
                node.delete(self.received.pop(dice.randrange(len(self.received))))
        elif what < 0.95:
            self.create()
        elif what < 0.97 and len(self.queues) > 2:
            node.call(messages.DeleteQueue(name))
            del self.queues[name]
        else:
            node.turn()


@pytest.mark.parametrize("seed", range(8))
def test_a_restart_in_the_middle_or_right_after_finds_everything(seed: int) -> None:
    history = History(seed)
    for restarts in range(6):
        run_until_a_checkpoint(history)
        steps = history.dice.randint(1, 60) if restarts % 2 == 0 else 10_000
        while history.node.is_checkpointing() and steps > 0:
            history.step()
            steps -= 1
        if restarts % 2:
            assert not history.node.is_checkpointing(), "it does not end"
        restart(history)


def run_until_a_checkpoint(history: History) -> None:
    for _ in range(10_000):
        history.step()
        if history.node.is_checkpointing():
            return
    pytest.fail("no checkpoint began")


def restart(history: History) -> None:
    """Everything is flushed, and the power goes."""
    before = dict(history.node.partitions)
    history.node.flush()
    history.node.crash()
    assert sorted(history.node.partitions) == sorted(before)
    for partition_id, partition in history.node.partitions.items():
        assert not list(differences(before[partition_id], partition))
        assert not list(inconsistencies(partition))
    history.received.clear()


def test_a_queue_that_is_made_while_others_are_captured_is_there_after_a_restart() -> None:
    node = BusyNode(options=OPTIONS)
    first = node.create("first")
    while not node.is_checkpointing():
        node.send(first, [b"x" * 2_000])
    while not node.node._parts.captures:
        node.turn()
    second = node.create("second")
    node.send(second, [b"here"])
    node.settle()
    assert not node.is_checkpointing()
    node.crash()
    assert node.drain(second) == [b"here"]


def test_a_queue_that_is_deleted_while_it_is_captured_stays_deleted() -> None:
    node = BusyNode()
    first, second = node.create("first"), node.create("second")
    node.send(second, [b"kept"])
    while not node.is_checkpointing():
        node.send(first, [b"x" * 2_000])
    while not (node.node._parts.captures and node.partitions[first].table.capture is not None):
        node.turn()
    node.call(messages.DeleteQueue("first"))
    node.settle()
    node.crash()
    assert list(node.partitions) == [second]
    assert node.drain(second) == [b"kept"]


def test_many_queues_take_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one turn does is bounded: as many turns as there are queues, at least."""
    monkeypatch.setattr(limits, "CAPTURE_PAGES", 1)
    node = BusyNode()
    queues = [node.create(f"queue-{number}") for number in range(50)]
    while not node.is_checkpointing():
        node.send(queues[0], [b"x" * 2_000])
    turns = 0
    while node.is_checkpointing():
        node.turn()
        turns += 1
    assert turns >= 100
    node.crash()
    assert sorted(node.partitions) == sorted(queues)
