"""What a receipt may do while its lease lives: everything."""

from __future__ import annotations

import pytest

from penstock.model.errors import PenstockError
from penstock.model.limits import RECEIVE_MESSAGES
from penstock.model.records import Purged
from penstock.model.runs import Runs
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Outcome, PendingRecord
from penstock.queue.state import states
from tests.queue.rig import START_MS, expand, leased


def test_a_delete_of_everything() -> None:
    rig, lease = leased()
    assert rig.delete(lease, [(1, 10)]) == Outcome(10, 0, [])
    assert rig.partition.table.messages == 0
    assert not list(rig.partition.leases)
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
    assert expand(dict(rig.partition.leases)[lease].runs()) == [3]


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
    rig.write([PendingRecord(Purged(5, START_MS))])
    assert rig.delete(lease, [(1, 10)]) == Outcome(6, 4, [])
