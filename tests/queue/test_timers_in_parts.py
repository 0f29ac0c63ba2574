"""Delays and times to live of very many messages that end together: in several records, with the same outcome as in one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model.batch import encode
from penstock.model.records import Deleted, MoveStarted, QueueRecord, TimersEnded, decode_record
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import upkeep
from penstock.queue.snapshot import snapshot
from penstock.queue.state import states
from tests.queue import recount
from tests.queue.rig import START_MS, Rig, expand


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_TIMERS_AT_ONCE", 3)


def records(rig: Rig) -> list[QueueRecord]:
    return [decode_record(entry[0]) for entry in rig.log if isinstance(entry, tuple)]  # type: ignore[misc]  # none of the catalogue


def parts(rig: Rig) -> list[TimersEnded]:
    return [record for record in records(rig) if isinstance(record, TimersEnded)]


def scattered(rig: Rig, column: str, messages: int = 40) -> None:
    """Every other message waits or expires, all at the same time."""
    times = [100 if place % 2 else 0 for place in range(messages)]
    rig.send(encode([b"x"] * messages, **{column: times}))  # type: ignore[arg-type]  # one of two columns


def run_upkeep(rig: Rig, now_ms: int) -> None:
    """Record by record, with a snapshot, a replay and a recount between any two."""
    for _ in range(200):
        due_ms = upkeep.upkeep_due(rig.partition)
        if due_ms is None or due_ms > now_ms:
            return
        decided = upkeep.expire(rig.partition, now_ms) or upkeep.end_delays(rig.partition, now_ms)
        if not decided:
            continue  # what is left was passed over
        rig.write(decided)
        recount.check(rig.partition)
        image = snapshot.dump(rig.partition)
        assert snapshot.dump(rig.replayed()) == image
        assert snapshot.dump(snapshot.load(image)) == image
        rig.partition = snapshot.load(image)
    raise AssertionError("it does not end")


def test_delays_end_part_by_part() -> None:
    rig = Rig()
    scattered(rig, "delays_ms")
    run_upkeep(rig, START_MS + 99)
    assert rig.partition.table.counts[states.DELAYED] == 20
    run_upkeep(rig, START_MS + 100)
    assert rig.partition.table.counts[states.READY] == 40
    assert [len(record.runs) for record in parts(rig)] == [3] * 6
    assert not list(rig.partition.delays)


@pytest.mark.parametrize("target", [None, "dead"])
def test_times_to_live_end_part_by_part(target: str | None) -> None:
    rig = Rig(QueueSettings(dead_letter_queue=target))
    scattered(rig, "ttls_ms")
    rig.receive(10)
    run_upkeep(rig, START_MS + 100)
    table, wanted = rig.partition.table, list(range(2, 42, 2))
    if target is None:
        assert rig.partition.totals.expired == 20
        assert [number for number in range(1, 41) if table.state(number)] == list(range(1, 41, 2))
    else:
        assert expand(run for runs in rig.partition.moves.values() for run in runs) == wanted
        assert all(record.reason == "expired" for record in records(rig) if isinstance(record, MoveStarted))
    assert len(parts(rig)) == 6
    assert not list(rig.partition.expiries)


def test_what_is_on_its_way_in_a_part_expires_when_it_comes_back() -> None:
    rig = Rig()
    scattered(rig, "ttls_ms")
    rig.carry_out(moving.start_move(rig.partition, [(1, 40)], "elsewhere", START_MS))
    run_upkeep(rig, START_MS + 100)
    assert expand(rig.partition.overdue) == list(range(2, 42, 2))
    rig.write(moving.abandon_move(rig.partition, [(1, 40)], START_MS + 100))
    run_upkeep(rig, START_MS + 200)
    assert rig.partition.totals.expired == 20
    assert rig.partition.table.messages == 20


def test_timers_of_what_is_gone_go_part_by_part() -> None:
    """Nothing is left to expire, and there are too many timers to look at all of them in one turn."""
    rig = Rig()
    scattered(rig, "ttls_ms")
    lease = rig.receive(40)
    assert lease is not None
    rig.partition.apply(Deleted(lease.lease, lease.runs, START_MS))
    for _ in range(20):
        rig.write(upkeep.expire(rig.partition, START_MS + 100))
    assert upkeep.upkeep_due(rig.partition) == START_MS + rig.partition.settings.retention_ms
    assert sum(len(runs) for _, runs in rig.partition.expiries) <= 3, "the last ones are not worth a record"
    assert len(parts(rig)) == 6
    assert all(not record.runs for record in parts(rig))


def test_one_long_run_ends_in_pieces() -> None:
    rig = Rig(QueueSettings(delay_ms=50))
    rig.send(encode([b"x"] * 100))
    run_upkeep(rig, START_MS + 50)
    assert rig.partition.table.counts[states.READY] == 100
    assert [record.runs for record in parts(rig)][:2] == [[(1, 12)], [(13, 12)]]


def test_replicas_of_an_earlier_version_are_told_all_at_once() -> None:
    rig = Rig()
    scattered(rig, "delays_ms")
    scattered(rig, "ttls_ms")
    rig.write(upkeep.end_delays(rig.partition, START_MS + 100, in_parts=False))
    rig.write(upkeep.expire(rig.partition, START_MS + 100, in_parts=False))
    assert not parts(rig)
    assert rig.partition.table.counts[states.DELAYED] == 0
    assert rig.partition.totals.expired == 20


@given(
    some.lists(
        some.tuples(some.integers(0, 60), some.integers(0, 60), some.booleans()), min_size=1, max_size=40
    ),
    some.integers(0, 100),
)
def test_the_outcome_is_that_of_one_record(messages: list[tuple[int, int, bool]], now_ms: int) -> None:
    at_once, in_parts = Rig(), Rig()
    for rig in (at_once, in_parts):
        for delay_ms, ttl_ms, together in messages:
            bodies = [b"x"] * (5 if together else 1)
            columns = {"delays_ms": [delay_ms] * len(bodies), "ttls_ms": [ttl_ms] * len(bodies)}
            rig.send(encode(bodies, **columns))  # type: ignore[arg-type]  # two columns
    run_upkeep(in_parts, START_MS + now_ms)
    at_once.write(upkeep.expire(at_once.partition, START_MS + now_ms, in_parts=False))
    at_once.write(upkeep.end_delays(at_once.partition, START_MS + now_ms, in_parts=False))
    one, other = at_once.partition.table, in_parts.partition.table
    assert [one.state(n) for n in range(1, one.next)] == [other.state(n) for n in range(1, other.next)]
    later = [
        [row for row in rig.partition.delays if row[0] > START_MS + now_ms] for rig in (at_once, in_parts)
    ]
    assert later[0] == later[1]
