"""Messages that were received as often as they may be: no part of the log that a crash or a failover leaves makes them ready again (I6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.model.records import SpentMoved, decode_record
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import Granted
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot
from penstock.queue.state import states
from tests.queue import recount
from tests.queue.rig import START_MS, Rig

SETTINGS = QueueSettings(max_receives=2, dead_letter_queue="dead", visibility_timeout_ms=100)
LATER_MS = START_MS + 100


def by_release(rig: Rig, granted: Granted) -> None:
    decision = settling.release(
        rig.partition, granted.lease, sorted(granted.runs), 50, LATER_MS, error="ValueError"
    )
    rig.carry_out(decision)
    rig.upkeep(LATER_MS + 100)


def by_time(rig: Rig, granted: Granted) -> None:
    rig.write(upkeep.end_leases(rig.partition, LATER_MS))


def undelivered(rig: Rig, granted: Granted) -> None:
    rig.write(settling.undelivered(rig.partition, granted.lease, granted.runs, LATER_MS))


Ending = Callable[[Rig, Granted], None]


def spent_and_ready(partition: Partition) -> list[int]:
    """Messages that anybody could receive, and nobody may."""
    table = partition.table
    ready = table.runs_in(states.RUNS_IN[states.READY], 1, table.next, 100)
    return [
        first + offset
        for first, count in ready
        for offset, receives in enumerate(table.receive_counts((first, count)))
        if receives >= 2
    ]


def received_twice(ending: Ending) -> Rig:
    rig = Rig(SETTINGS)
    rig.send_plain(3)
    ending(rig, granted_to(rig, 2))
    rig.send_plain(2)
    ending(rig, granted_to(rig, 5))
    return rig


def granted_to(rig: Rig, messages: int) -> Granted:
    granted = rig.receive(messages)
    assert granted is not None
    return granted


@pytest.mark.parametrize("ending", [by_release, by_time, undelivered])
def test_no_beginning_of_the_log_makes_a_spent_message_ready(ending: Ending) -> None:
    rig = received_twice(ending)
    for end in range(len(rig.log) + 1):
        partition = rig.replayed(rig.log[:end])
        recount.check(partition)
        assert spent_and_ready(partition) == [], f"after {end} of {len(rig.log)} records"
    assert rig.partition.moves[("dead", "max-receives")] == [(1, 2)]
    assert rig.partition.table.counts[states.READY] == 3


@pytest.mark.parametrize("ending", [by_release, by_time, undelivered])
def test_one_record_leaves_what_a_release_and_a_move_leave(ending: Ending) -> None:
    rig = received_twice(ending)
    apart, spent = rig.replayed([]), 0
    for entry in rig.log:
        assert isinstance(entry, tuple)
        record = decode_record(entry[0])
        if isinstance(record, SpentMoved):
            apart.apply(record.released)
            apart.apply(record.started)
            apart.index -= 1  # it was one record
            spent += 1
        else:
            rig.replayed([entry], onto=apart)
    assert spent == 1
    assert snapshot.dump(apart) == snapshot.dump(rig.partition)
