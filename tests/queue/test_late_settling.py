"""What a receipt may do after its lease: what its receive count proves to be safe, and nothing else."""

from __future__ import annotations

from penstock.model.records import SettingsChanged
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Outcome, PendingRecord
from penstock.queue.snapshot import snapshot
from penstock.queue.state import states
from tests.queue.rig import START_MS, Rig, expand, leased

# -- deleting after the lease has ended ----------------------------------------------------------------------


def test_a_delete_with_the_receive_count_takes_what_nobody_received_since() -> None:
    rig, lease = leased()
    rig.upkeep(START_MS + 1_000)
    assert rig.delete(lease, [(1, 10)], START_MS + 1_001, received=1) == Outcome(10, 0, [])
    assert rig.partition.table.messages == 0
    assert rig.partition.table.bytes == 0
    assert rig.delete(lease, [(1, 10)], START_MS + 1_002, received=1) == Outcome(0, 10, [])


def test_a_delete_with_an_old_receive_count_does_nothing() -> None:
    rig, old = leased()
    rig.upkeep(START_MS + 1_000)
    new = rig.receive(4, START_MS + 1_000)
    assert new is not None
    assert rig.delete(old, [(1, 10)], START_MS + 1_001, received=1) == Outcome(6, 0, [(1, 4)])
    rig.release(new.lease, [(1, 4)], START_MS + 1_002)
    assert rig.delete(old, [(1, 4)], START_MS + 1_003, received=1) == Outcome(0, 0, [(1, 4)])
    assert rig.delete(new.lease, [(1, 4)], START_MS + 1_004, received=2) == Outcome(4, 0, [])


def test_a_lease_that_never_reached_its_receiver_counts_too() -> None:
    rig, old = leased()
    rig.upkeep(START_MS + 1_000)
    unread = rig.receive(10, START_MS + 1_000)
    assert unread is not None
    rig.write(settling.undelivered(rig.partition, unread.lease, unread.runs, START_MS + 1_001))
    assert rig.delete(old, [(1, 10)], START_MS + 1_002, received=1).stale == [(1, 10)]


def test_a_released_message_that_is_delayed_can_be_deleted_and_leaves_no_timer_behind() -> None:
    rig, lease = leased()
    rig.release(lease, [(1, 5)], START_MS, delay_ms=500)
    assert rig.delete(lease, [(1, 10)], START_MS + 1, received=1) == Outcome(10, 0, [])
    rig.upkeep(START_MS + 1_000)
    assert rig.partition.table.counts[states.READY] == 0


def test_a_message_on_its_way_to_the_dead_letters_is_not_deleted() -> None:
    rig, lease = leased(max_receives=1, dead_letter_queue="dead")
    rig.upkeep(START_MS + 1_000)
    assert rig.partition.table.counts[states.MOVING] == 10
    assert rig.delete(lease, [(1, 10)], START_MS + 1_001, received=1) == Outcome(0, 0, [(1, 10)])


def test_messages_that_were_never_received_are_safe_from_a_count_of_zero() -> None:
    rig, lease = leased(5)
    rig.send_plain(5)
    assert rig.delete(lease, [(6, 5)], received=0) == Outcome(0, 0, [(6, 5)])


def test_a_late_delete_lets_the_rest_of_a_fifo_group_go_on_in_order() -> None:
    rig = Rig(QueueSettings(ordering="fifo", visibility_timeout_ms=1_000))
    rig.send_groups([b"a", b"a", b"b"])
    first = rig.receive(1)
    assert first is not None
    assert expand(first.runs) == [1]
    rig.upkeep(START_MS + 1_000)
    assert rig.delete(first.lease, [(1, 1)], START_MS + 1_001, received=1).done == 1
    assert sorted(rig.take(10, START_MS + 1_002)) == [2, 3]


def test_a_late_delete_survives_replay_and_snapshot() -> None:
    rig, lease = leased()
    rig.upkeep(START_MS + 1_000)
    rig.delete(lease, [(2, 3)], START_MS + 1_001, received=1)
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)
    rig.reload()
    assert rig.take(20, START_MS + 1_002) == [1, 5, 6, 7, 8, 9, 10]


def test_a_count_beyond_a_byte_is_told_apart() -> None:
    rig, lease = leased(1)
    for _ in range(299):
        rig.release(lease, [(1, 1)])
        granted = rig.receive(1)
        assert granted is not None
        lease = granted.lease
    rig.release(lease, [(1, 1)])
    assert rig.delete(lease, [(1, 1)], received=299).stale == [(1, 1)]
    assert rig.delete(lease, [(1, 1)], received=300).done == 1


# -- extending after the lease has ended ---------------------------------------------------------------------


def test_an_extension_with_the_receive_count_hides_what_nobody_received_since() -> None:
    rig, lease = leased()
    rig.upkeep(START_MS + 1_000)
    assert rig.extend(lease, [(1, 10)], 500, START_MS + 1_100, received=1) == Outcome(10, 0, [])
    assert rig.take(20, START_MS + 1_599) == []
    assert rig.extend(lease, [(1, 4)], 900, START_MS + 1_200) == Outcome(4, 0, [])
    rig.upkeep(START_MS + 1_600)
    assert rig.take(20, START_MS + 1_600) == [5, 6, 7, 8, 9, 10]
    assert rig.delete(lease, [(1, 4)], START_MS + 1_700) == Outcome(4, 0, [])


def test_a_message_that_is_hidden_again_was_received_no_more_often() -> None:
    rig, lease = leased(1)
    rig.upkeep(START_MS + 1_000)
    rig.extend(lease, [(1, 1)], 500, START_MS + 1_100, received=1)
    assert rig.partition.table.receive_counts((1, 1)) == [1]
    rig.upkeep(START_MS + 1_600)
    assert rig.take(1, START_MS + 1_600) == [1]
    assert rig.partition.table.receive_counts((1, 1)) == [2]
    assert rig.partition.table.first_received((1, 1), 0) == [START_MS]


def test_an_extension_with_an_old_receive_count_does_nothing() -> None:
    rig, old = leased()
    rig.upkeep(START_MS + 1_000)
    new = rig.receive(4, START_MS + 1_000)
    assert new is not None
    assert rig.extend(old, [(1, 10)], 500, START_MS + 1_001, received=1) == Outcome(6, 0, [(1, 4)])
    rig.release(new.lease, [(1, 4)], START_MS + 1_002)
    assert rig.extend(old, [(1, 4)], 500, START_MS + 1_003, received=1) == Outcome(0, 0, [(1, 4)])


def test_some_are_extended_and_others_of_the_lease_come_back_to_it() -> None:
    rig, lease = leased()
    rig.release(lease, [(3, 2)])
    assert rig.extend(lease, [(1, 10)], 5_000, START_MS + 10, received=1) == Outcome(10, 0, [])
    assert expand(dict(rig.partition.leases)[lease].runs()) == list(range(1, 11))
    rig.upkeep(START_MS + 5_009)
    assert rig.take(20, START_MS + 5_009) == []


def test_a_delayed_message_is_not_extended() -> None:
    rig, lease = leased()
    rig.release(lease, [(1, 5)], delay_ms=500)
    assert rig.extend(lease, [(1, 5)], 500, START_MS + 1, received=1) == Outcome(0, 0, [(1, 5)])


def test_giving_back_what_is_back_already_is_done_and_writes_nothing() -> None:
    rig, lease = leased()
    rig.upkeep(START_MS + 1_000)
    before = rig.partition.index
    assert rig.release(lease, [(1, 10)], START_MS + 1_001, received=1) == Outcome(10, 0, [])
    assert rig.release(lease, [(1, 10)], START_MS + 1_001, delay_ms=50, received=1).stale == [(1, 10)]
    assert rig.partition.index == before


def test_a_resumed_lease_dies_into_the_dead_letters_when_its_count_is_spent() -> None:
    rig, lease = leased(1)
    rig.upkeep(START_MS + 1_000)
    rig.extend(lease, [(1, 1)], 500, START_MS + 1_100, received=1)
    settings = QueueSettings(visibility_timeout_ms=1_000, max_receives=1, dead_letter_queue="dead")
    rig.write([PendingRecord(SettingsChanged(settings, START_MS + 1_200))])
    rig.upkeep(START_MS + 1_600)
    assert rig.partition.table.counts[states.MOVING] == 1


def test_an_attempt_whose_lease_was_resumed_is_over() -> None:
    rig = Rig(QueueSettings(visibility_timeout_ms=1_000))
    rig.send_plain(2)
    decision = receiving.grant(rig.partition, 2, 1 << 20, None, START_MS, b"once")
    assert decision is not None
    lease = rig.carry_out(decision).lease
    rig.extend(lease, [(2, 1)], 5_000)
    rig.upkeep(START_MS + 1_000)
    rig.extend(lease, [(1, 1)], 5_000, START_MS + 1_001, received=1)
    assert receiving.repeat(rig.partition, b"once", None, START_MS + 1_002) is None


def test_a_resumed_lease_keeps_a_fifo_group_waiting() -> None:
    rig = Rig(QueueSettings(ordering="fifo", visibility_timeout_ms=1_000))
    rig.send_groups([b"a", b"a", b"b"])
    first = rig.receive(1)
    assert first is not None
    rig.upkeep(START_MS + 1_000)
    assert rig.extend(first.lease, [(1, 1)], 500, START_MS + 1_001, received=1).done == 1
    assert rig.take(10, START_MS + 1_002) == [3]
    rig.delete(first.lease, [(1, 1)], START_MS + 1_003)
    assert rig.take(10, START_MS + 1_004) == [2]


def test_a_resumed_lease_survives_replay_and_snapshot() -> None:
    rig, lease = leased()
    rig.upkeep(START_MS + 1_000)
    rig.extend(lease, [(2, 3)], 500, START_MS + 1_001, received=1)
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)
    rig.reload()
    assert rig.take(20, START_MS + 1_002) == [1, 5, 6, 7, 8, 9, 10]
    assert rig.delete(lease, [(2, 3)], START_MS + 1_003) == Outcome(3, 0, [])
