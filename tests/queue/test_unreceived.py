"""Giving back what nobody saw: as if it had never been received."""

from __future__ import annotations

from penstock.model.settings import QueueSettings
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions.decision import Outcome
from penstock.queue.snapshot import snapshot
from penstock.queue.state import states
from tests.queue.rig import START_MS, Rig, expand, leased


def test_what_nobody_saw_was_not_received() -> None:
    rig, lease = leased()
    before = rig.partition.totals.redelivered
    assert rig.release(lease, [(1, 4)], START_MS + 1, unreceived=True) == Outcome(4, 0, [])
    assert rig.partition.table.receive_counts((1, 10)) == [0] * 4 + [1] * 6
    assert rig.partition.totals.redelivered == before
    again = rig.receive(10, START_MS + 50)
    assert again is not None
    assert expand(again.runs) == [1, 2, 3, 4]
    assert rig.partition.table.receive_counts((1, 4)) == [1] * 4
    assert rig.partition.table.first_received((1, 4), START_MS + 50) == [START_MS + 50] * 4


def test_an_earlier_receive_stays_counted_and_remembered() -> None:
    rig, lease = leased(1)
    rig.release(lease, [(1, 1)], START_MS + 10)
    second = rig.receive(1, START_MS + 20)
    assert second is not None
    rig.release(second.lease, [(1, 1)], START_MS + 30, unreceived=True)
    assert rig.partition.table.receive_counts((1, 1)) == [1]
    assert rig.partition.table.first_received((1, 1), 0) == [START_MS]
    assert rig.delete(lease, [(1, 1)], START_MS + 40, received=1).done == 1


def test_what_nobody_saw_does_not_go_to_the_dead_letters() -> None:
    rig, lease = leased(2, max_receives=1, dead_letter_queue="dead")
    rig.release(lease, [(1, 1)], unreceived=True)
    rig.release(lease, [(2, 1)])
    assert rig.partition.table.counts[states.MOVING] == 1
    assert rig.take(10) == [1]


def test_who_no_longer_holds_messages_cannot_unreceive_them() -> None:
    rig, old = leased(1)
    rig.upkeep(START_MS + 1_000)
    assert rig.release(old, [(1, 1)], START_MS + 1_000, received=1, unreceived=True).stale == [(1, 1)]
    assert rig.take(1, START_MS + 1_001) == [1]
    assert rig.release(old, [(1, 1)], START_MS + 1_002, unreceived=True).stale == [(1, 1)]
    assert rig.partition.table.receive_counts((1, 1)) == [2]


def test_an_attempt_that_nobody_saw_is_a_fresh_receive() -> None:
    rig = Rig(QueueSettings(ordering="fifo", visibility_timeout_ms=1_000))
    rig.send_groups([b"a", b"a"])
    decision = receiving.grant(rig.partition, 2, 1 << 20, None, START_MS, b"once")
    assert decision is not None
    granted = rig.carry_out(decision)
    rig.release(granted.lease, granted.runs, START_MS + 1, unreceived=True)
    assert receiving.repeat(rig.partition, b"once", None, START_MS + 2) is None
    assert rig.take(10, START_MS + 2) == [1, 2]


def test_counts_beyond_a_byte_go_down_as_they_came_up() -> None:
    rig, lease = leased(1)
    for count in range(2, 300):
        rig.release(lease, [(1, 1)])
        unseen = rig.receive(1)
        assert unseen is not None
        rig.release(unseen.lease, unseen.runs, unreceived=True)
        assert rig.partition.table.receive_counts((1, 1)) == [count - 1]
        seen = rig.receive(1)
        assert seen is not None
        assert rig.partition.table.receive_counts((1, 1)) == [count]
        lease = seen.lease
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_what_nobody_saw_survives_replay_and_snapshot() -> None:
    rig, lease = leased()
    rig.release(lease, [(2, 3)], START_MS + 1, unreceived=True)
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)
    rig.reload()
    assert rig.take(20, START_MS + 2) == [2, 3, 4]
    assert rig.partition.table.receive_counts((1, 5)) == [1] * 5
