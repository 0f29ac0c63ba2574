"""What a receipt may do: everything while its lease lives, after it only what a receive count proves to be safe."""

from __future__ import annotations

import pytest

from penstock.model.errors import PenstockError
from penstock.model.limits import RECEIVE_MESSAGES
from penstock.model.records import Purged, SettingsChanged
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.queue import receiving, settling, snapshot, states
from penstock.queue.decision import Outcome, Written
from tests.queue.rig import START_MS, Rig, expand


def leased(count: int = 10, **settings: object) -> tuple[Rig, int]:
    """Messages 1 to `count`, out for a second under lease 1."""
    rig = Rig(QueueSettings(visibility_timeout_ms=1_000, **settings))  # type: ignore[arg-type]
    rig.send_plain(count)
    granted = rig.receive(count)
    assert granted is not None
    return rig, granted.lease


def test_a_delete_of_everything() -> None:
    rig, lease = leased()
    assert rig.delete(lease, [(1, 10)]) == Outcome(10, 0, [])
    assert rig.partition.table.messages == 0
    assert rig.partition.leases.leases == {}
    assert rig.delete(lease, [(1, 10)]) == Outcome(0, 10, []), "again is harmless"


def test_a_delete_in_parts_in_any_order() -> None:
    rig, lease = leased()
    assert rig.delete(lease, [(9, 2), (1, 1), (3, 3)]).done == 6
    assert rig.delete(lease, [(1, 10)]) == Outcome(4, 6, [])


def test_a_lease_says_nothing_about_messages_it_never_held() -> None:
    rig, lease = leased(5)
    rig.send_plain(5)
    assert rig.delete(lease, [(3, 5), (10, 1), (50, 2)]) == Outcome(3, 2, [(6, 2), (10, 1)])
    assert rig.partition.table.messages == 7


def test_an_ended_lease_does_nothing_even_if_nobody_received_since() -> None:
    rig, lease = leased()
    rig.upkeep(START_MS + 1_000)
    for outcome in (
        rig.delete(lease, [(1, 10)], START_MS + 1_000),
        rig.extend(lease, [(1, 10)], 5_000, START_MS + 1_000),
        rig.release(lease, [(1, 10)], START_MS + 1_000),
    ):
        assert outcome == Outcome(0, 0, [(1, 10)])
    assert rig.partition.table.counts[states.READY] == 10


def test_the_next_receiver_is_safe_from_the_last() -> None:
    rig, old = leased()
    rig.upkeep(START_MS + 1_000)
    new = rig.receive(10, START_MS + 1_000)
    assert new is not None
    assert rig.delete(old, [(1, 10)], START_MS + 1_001).stale == [(1, 10)]
    assert rig.delete(new.lease, [(1, 10)], START_MS + 1_001).done == 10


def test_a_lease_number_that_was_never_given_out_does_nothing() -> None:
    rig, _ = leased()
    assert rig.delete(999, [(1, 10)]) == Outcome(0, 0, [(1, 10)])


def test_an_extension_counts_from_now() -> None:
    rig, lease = leased()
    rig.extend(lease, [(1, 10)], 1_000, START_MS + 900)
    rig.upkeep(START_MS + 1_899)
    assert rig.partition.table.counts[states.LEASED] == 10
    rig.upkeep(START_MS + 1_900)
    assert rig.partition.table.counts[states.READY] == 10


def test_the_rest_of_a_partly_extended_lease_ends_on_time() -> None:
    rig, lease = leased()
    rig.extend(lease, [(4, 2)], 5_000)
    rig.upkeep(START_MS + 1_000)
    assert rig.take(10, START_MS + 1_000) == [1, 2, 3, 6, 7, 8, 9, 10]
    assert rig.delete(lease, [(1, 10)], START_MS + 1_000).done == 2


def test_a_released_message_keeps_its_place_and_its_count() -> None:
    rig, lease = leased(3)
    rig.send_plain(2)
    rig.release(lease, [(2, 1)])
    assert rig.take(10) == [2, 4, 5]
    assert rig.partition.table.receive_counts((1, 5)) == [1, 2, 1, 1, 1]


def test_a_release_with_a_delay_is_not_early() -> None:
    rig, lease = leased(3)
    rig.release(lease, [(1, 3)], START_MS, delay_ms=500)
    rig.upkeep(START_MS + 499)
    assert rig.take(10, START_MS + 499) == []
    rig.upkeep(START_MS + 500)
    assert rig.take(10, START_MS + 500) == [1, 2, 3]


@pytest.mark.parametrize("runs", [[(1, 0)], [(-1, 2)], [(1, RECEIVE_MESSAGES + 1)], [(1, -5)]])
def test_runs_that_cannot_be_are_refused(runs: Runs) -> None:
    rig, lease = leased()
    with pytest.raises(PenstockError):
        rig.delete(lease, runs)
    with pytest.raises(PenstockError):
        rig.release(lease, runs)
    with pytest.raises(PenstockError):
        rig.extend(lease, runs, 1_000)


def test_runs_that_overlap_count_once() -> None:
    rig, lease = leased()
    assert rig.delete(lease, [(1, 5), (3, 5), (3, 1)]) == Outcome(7, 0, [])


# -- received too often --------------------------------------------------------------------------------------


def test_the_last_receive_that_is_given_back_is_a_dead_letter() -> None:
    rig, lease = leased(3, max_receives=2, dead_letter_queue="dead")
    rig.release(lease, [(1, 3)])
    again = rig.receive(2)
    assert again is not None
    rig.release(again.lease, [(1, 1)])
    assert rig.partition.moves == {("dead", "max-receives"): [(1, 1)]}
    rig.upkeep(START_MS + 1_000)
    assert rig.partition.moves == {("dead", "max-receives"): [(1, 2)]}
    assert rig.take(10, START_MS + 1_000) == [3]


def test_a_dead_letter_has_no_delay_left_behind() -> None:
    """A timer of a delay that never was would end a later delay early."""
    rig, lease = leased(1, max_receives=1, dead_letter_queue="dead")
    rig.release(lease, [(1, 1)], START_MS, delay_ms=500)
    assert rig.partition.delays.next_ms() is None
    assert rig.partition.moves == {("dead", "max-receives"): [(1, 1)]}


def test_undelivered_messages_are_ready_at_once() -> None:
    rig, lease = leased(5)
    rig.delete(lease, [(2, 1)])
    rig.write(settling.undelivered(rig.partition, lease, [(4, 2), (1, 2)], START_MS))
    assert rig.take() == [1, 4, 5]
    assert expand(rig.partition.leases.leases[lease].runs()) == [3]


def test_a_purge_takes_everything_but_what_is_on_its_way() -> None:
    rig, lease = leased(3, max_receives=1, dead_letter_queue="dead")
    rig.release(lease, [(1, 1)])
    rig.send_plain(3)
    assert rig.carry_out(settling.purge(rig.partition, START_MS)) == 5
    assert rig.partition.table.counts[states.MOVING] == rig.partition.table.messages == 1
    assert rig.delete(lease, [(1, 3)]) == Outcome(0, 2, [(1, 1)])
    assert rig.partition.totals.purged == 5


def test_a_purge_up_to_a_message_leaves_the_leases_after_it() -> None:
    rig, lease = leased(10)
    rig.write([Written(Purged(5, START_MS))])
    assert rig.delete(lease, [(1, 10)]) == Outcome(6, 4, [])


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
    assert expand(rig.partition.leases.leases[lease].runs()) == list(range(1, 11))
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
    rig.write([Written(SettingsChanged(settings, START_MS + 1_200))])
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
