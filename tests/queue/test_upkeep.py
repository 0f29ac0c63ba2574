"""What time alone does: leases, delays, times to live and retention end; never early, and never half."""

from __future__ import annotations

import pytest

from penstock.model import limits
from penstock.model.batch import UNSET, encode
from penstock.model.limits import RETENTION_SLOT_MS, TIMER_SLOT_MS
from penstock.model.records import Expired, Matured, MoveStarted, Released, SettingsChanged
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.snapshot import snapshot
from penstock.queue.state import states
from tests.queue.rig import START_MS, Rig


def rig_with(**settings: object) -> Rig:
    return Rig(QueueSettings(**settings))  # type: ignore[arg-type]  # as the caller names them


def test_nothing_is_due_in_an_empty_queue() -> None:
    rig = Rig()
    assert upkeep.upkeep_due(rig.partition) is None
    for decide in (upkeep.expire, upkeep.retain, upkeep.end_delays, upkeep.end_leases):
        assert decide(rig.partition, START_MS) == []


def test_the_next_upkeep_is_the_earliest_of_all() -> None:
    rig = rig_with(retention_ms=100_000, visibility_timeout_ms=70_000)
    rig.send_plain(1)
    assert upkeep.upkeep_due(rig.partition) == START_MS + 100_000
    rig.send(encode([b"x"], ttls_ms=[90_000]))
    assert upkeep.upkeep_due(rig.partition) == START_MS + 90_000
    rig.send(encode([b"x"], delays_ms=[80_000]))
    assert upkeep.upkeep_due(rig.partition) == START_MS + 80_000
    rig.receive(1)
    assert upkeep.upkeep_due(rig.partition) == START_MS + 70_000


@pytest.mark.parametrize("delay_ms", [1, 7, 10, 999])
def test_a_delay_is_never_early_and_at_most_a_slot_late(delay_ms: int) -> None:
    for start_ms in (START_MS, START_MS + 3):
        rig = Rig()
        rig.send(encode([b"x"], delays_ms=[delay_ms]), start_ms)
        rig.upkeep(start_ms + delay_ms - 1)
        assert rig.partition.table.counts[states.DELAYED] == 1
        rig.upkeep(start_ms + delay_ms + TIMER_SLOT_MS - 1)
        assert rig.partition.table.counts[states.READY] == 1


def test_a_time_to_live_ends_whatever_the_state() -> None:
    rig = rig_with(default_ttl_ms=100, delay_ms=50)
    rig.send(encode([b"ready", b"out", b"delayed"], delays_ms=[0, 0, 5_000]))
    rig.receive(1)
    rig.upkeep(START_MS + 99)
    assert rig.partition.table.messages == 3
    rig.upkeep(START_MS + 100)
    assert rig.partition.table.messages == 0
    assert not list(rig.partition.leases)
    assert rig.partition.totals.expired == 3


def test_what_expires_goes_to_the_dead_letter_queue_if_there_is_one() -> None:
    rig = rig_with(default_ttl_ms=100, dead_letter_queue="dead")
    rig.send_plain(3)
    assert upkeep.expire(rig.partition, START_MS + 100) == [
        PendingRecord(MoveStarted([(1, 3)], "dead", "expired", START_MS + 100))
    ]


def test_retention_ends_everything_and_needs_no_dead_letter_queue() -> None:
    rig = rig_with(retention_ms=1_000, dead_letter_queue="dead")
    rig.send_plain(2, START_MS)
    rig.send_plain(2, START_MS + 500)
    rig.receive(1)
    rig.upkeep(START_MS + 999)
    assert rig.partition.table.messages == 4
    rig.upkeep(START_MS + 1_000)
    assert rig.partition.table.messages == 2
    rig.upkeep(START_MS + 1_500)
    assert rig.partition.table.messages == 0
    assert rig.partition.totals.expired == 4
    assert rig.partition.moves == {}


def test_retention_is_never_early_whatever_the_slot() -> None:
    for offset_ms in (0, 1, 50, 99):
        rig = rig_with(retention_ms=1_000)
        rig.send_plain(1, START_MS + offset_ms)
        rig.upkeep(START_MS + offset_ms + 999)
        assert rig.partition.table.messages == 1
        rig.upkeep(START_MS + offset_ms + 1_000 + RETENTION_SLOT_MS)
        assert rig.partition.table.messages == 0


def test_a_changed_retention_holds_for_what_is_there() -> None:
    rig = rig_with(retention_ms=100_000)
    rig.send_plain(1)
    rig.write([PendingRecord(SettingsChanged(QueueSettings(retention_ms=1_000), START_MS))])
    assert upkeep.upkeep_due(rig.partition) == START_MS + 1_000


def test_what_is_stale_writes_no_record() -> None:
    """Messages deleted long before their time cost nothing when it comes."""
    rig = rig_with(default_ttl_ms=100, retention_ms=1_000)
    rig.send(encode([b"x"] * 5, delays_ms=[50] * 5))
    rig.upkeep(START_MS + 50)
    granted = rig.receive(5, START_MS + 50)
    assert granted is not None
    rig.delete(granted.lease, granted.runs, START_MS + 50)
    written = len(rig.log)
    rig.upkeep(START_MS + 10_000)
    assert len(rig.log) == written
    assert upkeep.upkeep_due(rig.partition) is None


def test_a_decision_that_could_not_be_written_is_made_again() -> None:
    """The journal may have no room for a moment: nothing that was due may be forgotten by it."""
    rig = rig_with(default_ttl_ms=300, retention_ms=1_000, visibility_timeout_ms=100)
    rig.send(encode([b"x"] * 2, delays_ms=[0, 200]))
    rig.receive(1)
    for now_ms, decide, record in (
        (START_MS + 100, upkeep.end_leases, Released),
        (START_MS + 200, upkeep.end_delays, Matured),
        (START_MS + 300, upkeep.expire, Expired),
        (START_MS + 1_000, upkeep.retain, Expired),
    ):
        first = decide(rig.partition, now_ms)
        assert [type(written.record) for written in first] == [record]
        assert decide(rig.partition, now_ms) == first
        due_ms = upkeep.upkeep_due(rig.partition)
        assert due_ms is not None
        assert due_ms <= now_ms


def test_many_leases_end_in_steps_and_none_is_missed() -> None:
    rig = rig_with(visibility_timeout_ms=100)
    rig.send_plain(2_500)
    for _ in range(2_500):
        rig.receive(1)
    assert len(upkeep.end_leases(rig.partition, START_MS + 100)) == 500
    rig.upkeep(START_MS + 100)
    assert rig.partition.table.counts[states.READY] == 2_500


def test_a_visibility_timeout_of_zero_gives_the_message_back_at_once() -> None:
    rig = rig_with(visibility_timeout_ms=0)
    rig.send_plain(1)
    for count in range(1, 4):
        assert rig.take(1) == [1]
        rig.upkeep(START_MS)
        assert rig.partition.table.receive_counts((1, 1)) == [count]


# -- on its way when its time comes --------------------------------------------------------------------------


def moved_with_ttl(ttl_ms: int) -> Rig:
    """One message, on its way to another queue."""
    rig = Rig()
    rig.send(encode([b"x", b"y"], ttls_ms=[ttl_ms, ttl_ms]))
    rig.carry_out(moving.start_move(rig.partition, [(1, 1)], "other", START_MS))
    return rig


@pytest.mark.parametrize("restart", [False, True])
def test_a_message_whose_time_ended_on_its_way_expires_if_it_comes_back(restart: bool) -> None:
    rig = moved_with_ttl(100)
    rig.upkeep(START_MS + 100)
    assert rig.partition.table.counts[states.MOVING] == rig.partition.table.messages == 1
    if restart:
        rig.reload()
    rig.upkeep(START_MS + 500)
    rig.write(moving.abandon_move(rig.partition, [(1, 1)], START_MS + 500))
    rig.upkeep(START_MS + 500)
    assert rig.partition.table.messages == 0
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_a_message_that_arrived_on_time_is_not_bothered() -> None:
    rig = moved_with_ttl(100)
    rig.upkeep(START_MS + 100)
    rig.write(moving.finish_move(rig.partition, [(1, 1)], START_MS + 100))
    assert rig.partition.overdue == []
    rig.upkeep(START_MS + 200)
    assert rig.partition.totals.expired == 1


def test_a_message_older_than_the_retention_expires_if_it_comes_back() -> None:
    rig = rig_with(retention_ms=1_000)
    rig.send_plain(1)
    rig.carry_out(moving.start_move(rig.partition, [(1, 1)], "other", START_MS))
    rig.upkeep(START_MS + 5_000)
    assert rig.partition.table.messages == 1
    assert upkeep.upkeep_due(rig.partition) is None, "a node must not wake up for it again and again"
    rig.write(moving.abandon_move(rig.partition, [(1, 1)], START_MS + 6_000))
    assert upkeep.upkeep_due(rig.partition) == START_MS + 1_000, "and must not sleep through its end"
    rig.upkeep(START_MS + 6_000)
    assert rig.partition.table.messages == 0


@pytest.mark.parametrize("target", [None, "dead"])
def test_scattered_messages_end_in_records_of_bounded_size(
    target: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RUNS_PER_RECORD", 3)
    rig = rig_with(dead_letter_queue=target)
    odd = [index % 2 for index in range(40)]
    rig.send(
        encode([b"x"] * 40, delays_ms=[100 * one for one in odd], ttls_ms=[500 * one or UNSET for one in odd])
    )
    (matured,) = upkeep.end_delays(rig.partition, START_MS + 100)
    assert isinstance(matured.record, Matured)
    assert matured.record.runs == [(2, 1), (4, 1), (6, 1)]
    rig.upkeep(START_MS + 100)
    assert rig.partition.table.counts[states.READY] == 40
    rig.upkeep(START_MS + 500)
    assert rig.partition.table.counts[states.READY] == 20
    assert rig.partition.table.counts[states.MOVING] == (20 if target else 0)
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)
