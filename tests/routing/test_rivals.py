"""Several front ends change the same queues at once: what one of them finds that another has changed meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cluster.layout.entries import NEXT_ID, PARTITIONS, QueueEntry, encode, partition_key, queue_key
from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.model.settings import QueueSettings
from penstock.routing import creating
from penstock.routing.altering import _alter_partition, alter
from penstock.routing.creating import made
from penstock.routing.deleting import ATTEMPTS, delete
from penstock.routing.settling import settle
from penstock.steps.step import Look, Put, Reply, Stored, Until
from penstock.wire.messages import AlterQueue, Delete, DeleteQueue, Receipt, ReceiptOutcome, Settled
from tests.routing.test_creating import SETTINGS, World


def _deleting(world: World) -> None:
    """A queue that is being deleted, one partition of which only a newer version can tell so."""
    queue = QueueEntry(
        name="q", queue_id=7, settings=SETTINGS, created_ms=0, partitions=[8], state="deleting"
    )
    world.put(queue_key("q"), encode(queue))
    world.put(partition_key(8), b"\xc1")
    world.put(NEXT_ID, b"100")
    world.map.apply(queue_key("q"), encode(queue))


def _stopped_at_until(world: World, steps: Any) -> Until:
    """Carries steps out up to the first wait."""
    outcome: Any = None
    while True:
        step = steps.send(outcome)
        if isinstance(step, Until):
            return step
        if isinstance(step, Look):
            outcome = Stored(*world.entries.get(step.key, (None, 0)))
        else:
            assert isinstance(step, Put)
            world.put(step.key, step.value)
            outcome = world.version


def test_a_name_is_waited_for_until_its_last_queue_is_gone() -> None:
    world = World()
    _deleting(world)
    steps = made(world.context, "q", SETTINGS, may_differ=False)
    wait = _stopped_at_until(world, steps)
    assert not wait.holds()
    del world.entries[queue_key("q")]
    world.map.apply(queue_key("q"), None)
    assert wait.holds()
    step: Any = steps.send(True)
    assert step == Look(queue_key("q"))


def test_a_name_that_does_not_become_free_is_refused_for_now() -> None:
    world = World()
    _deleting(world)
    steps = made(world.context, "q", SETTINGS, may_differ=False)
    _stopped_at_until(world, steps)
    with pytest.raises(PenstockError, match="still being deleted") as refused:
        steps.send(False)
    assert refused.value.code == ErrorCode.OVERLOADED


@pytest.mark.parametrize("attempts", [1, ATTEMPTS])
def test_one_request_counts_ids_for_all_that_wait_meanwhile(
    attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creating, "ATTEMPTS", attempts)
    world = World()
    first = made(world.context, "one", SETTINGS, may_differ=False)
    step: Any = first.send(None)
    assert isinstance(step, Look)  # it counts
    second = made(world.context, "two", SETTINGS, may_differ=False)
    wait = _stopped_at_until(world, second)
    assert not wait.holds()
    outcome: Any = Stored(*world.entries.get(step.key, (None, 0)))
    while not wait.holds():
        step = first.send(outcome)
        if isinstance(step, Put):
            world.put(step.key, step.value)
            outcome = world.version
        else:
            outcome = Stored(*world.entries.get(step.key, (None, 0)))
    step = second.send(True)
    assert isinstance(step, Put)
    assert step.key.startswith(PARTITIONS)


def test_what_is_given_up_may_be_gone_already() -> None:
    """The name is taken, and the manager has cleared the partition before this front end gives it up."""
    world = World()
    existing = QueueEntry(name="q", queue_id=7, settings=SETTINGS, created_ms=0, partitions=[8])
    world.put(NEXT_ID, b"100")
    world.put(queue_key("q"), encode(existing))
    put = world.put

    def clears(key: str, value: bytes) -> None:
        put(key, value)
        if key.startswith(PARTITIONS):
            del world.entries[key]

    world.put = clears  # type: ignore[method-assign]  # of this object alone
    assert world.make("q") == existing
    assert not [key for key in world.entries if key.startswith(PARTITIONS)]


def test_a_partition_that_is_gone_has_nothing_to_be_altered() -> None:
    settings = QueueSettings(replicas=3, visibility_timeout_ms=31_000)
    queue = QueueEntry(name="q", queue_id=7, settings=settings, created_ms=0, partitions=[8])
    assert World().run(_alter_partition(8, queue)) == settings


def _lost_races(world: World, steps: Any) -> tuple[int, ErrorCode]:
    """How often steps try, and what they say in the end, where another one writes between each look and the write that relies on it."""
    outcome: Any = None
    proceed: Any = steps.send
    writes = 0
    while True:
        try:
            step = proceed(outcome)
        except PenstockError as refused:
            return writes, refused.code
        proceed = steps.send
        if isinstance(step, Put):
            proceed, outcome, writes = steps.throw, VersionConflictError("changed"), writes + 1
        else:
            assert isinstance(step, Look)
            outcome = Stored(*world.entries.get(step.key, (None, 0)))


def test_who_loses_every_race_is_refused_for_now() -> None:
    world = World()
    world.map.apply(queue_key("q"), encode(world.make("q")))
    assert _lost_races(world, delete(DeleteQueue("q"))) == (ATTEMPTS, ErrorCode.OVERLOADED)
    altering = alter(world.context, AlterQueue("q", {"delay_ms": 5}))
    assert _lost_races(world, altering) == (1, ErrorCode.OVERLOADED)
    creating_one = made(World().context, "r", SETTINGS, may_differ=False)
    assert _lost_races(World(), creating_one) == (ATTEMPTS**2, ErrorCode.OVERLOADED), "it never gets an id"


def test_a_receipt_over_several_partitions_has_one_outcome() -> None:
    world = World()
    settings = QueueSettings(replicas=3, partitions=2)
    queue = world.run(made(world.context, "q", settings, may_differ=False))
    world.map.apply(queue_key("q"), encode(queue))
    token = queue.queue_id.to_bytes(8, "little") + bytes(24)
    steps = settle(world.context, Delete([Receipt(token, [(3, 1), ((1 << 48) + 5, 2)])]))
    asked: Any = steps.send(None)
    replies = [Reply(Settled([ReceiptOutcome(1, 0, [])])), Reply(Settled([ReceiptOutcome(1, 1, [(5, 1)])]))]
    assert len(asked.asks) == 2
    with pytest.raises(StopIteration) as end:
        steps.send(replies)
    assert end.value.value.answer.outcomes == [ReceiptOutcome(2, 1, [((1 << 48) + 5, 1)])]
