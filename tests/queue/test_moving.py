"""Moves between queues: whatever is lost and repeated, each message is in exactly one place (I6)."""

from __future__ import annotations

from itertools import product

import pytest

from penstock.model.batch import encode
from penstock.model.origin import Lateness, Origin, Reason
from penstock.model.records import MoveStarted
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.state import states
from tests.queue import large_states, recount
from tests.queue.rig import START_MS, Rig, expand


class Pair:
    """A source with four messages on their way, and their target. Writes of a queue survive as a prefix."""

    def __init__(self) -> None:
        self.source = Rig(QueueSettings(), partition_id=1)
        self.target = Rig(QueueSettings(), partition_id=2)
        self.source.send_plain(1)
        self.source.send(encode([b"a", b"b", b"c", b"d"]))
        self.source.carry_out(moving.start_move(self.source.partition, [(2, 4)], "target", START_MS))

    def arrive(self, runs: Runs) -> list[PendingRecord]:
        origin = Origin(1, "orders", "redrive", runs, START_MS, [0] * len(expand(runs)), START_MS)
        batch = encode(self.source.bodies(runs))
        return moving.arrive(self.target.partition, batch, origin, START_MS)

    def moving(self) -> Runs:
        return [run for runs in self.source.partition.moves.values() for run in runs]

    def finish(self) -> None:
        """What a node does, at the start and whenever something is on its way."""
        if left := self.moving():
            self.target.write(self.arrive(left))
            self.source.write(moving.finish_move(self.source.partition, left, START_MS))
        for source_id, runs in list(self.target.partition.origins):
            self.target.write(moving.forget_origins(self.target.partition, source_id, [*runs], START_MS))

    def bodies(self, rig: Rig) -> list[bytes]:
        table = rig.partition.table
        return rig.bodies(table.runs_in(states.RUNS_LIVING, 1, table.next, 100))


STEPS = ("arrive 2", "arrive 4", "finish 2", "finish 4", "forget 2", "forget 4", "restart")


def step(pair: Pair, name: str) -> None:
    """One step of a careless mover that keeps only to the two rules: finish what arrived, forget what finished."""
    verb, _, count = name.partition(" ")
    runs = [(2, int(count or 0))]
    arrived = pair.target.partition.origins.arrived(1, runs)
    match verb:
        case "arrive":
            on_their_way = [r for r in expand(runs) if pair.source.partition.table.state(r)]
            if on_their_way == expand(runs):
                pair.target.write(pair.arrive(runs))
        case "finish":
            pair.source.write(moving.finish_move(pair.source.partition, arrived, START_MS))
        case "forget":
            finished = [(s, 1) for s in expand(arrived) if not pair.source.partition.table.state(s)]
            pair.target.write(moving.forget_origins(pair.target.partition, 1, finished, START_MS))
        case _:
            pair.source.reload()
            pair.target.reload()


@pytest.mark.parametrize("first", STEPS)
def test_every_order_of_steps_repeats_and_restarts(first: str) -> None:
    for order in product(STEPS, repeat=3):
        pair = Pair()
        for name in (first, *order):
            step(pair, name)
        pair.finish()
        assert pair.bodies(pair.source) == [bytes(10)], (first, *order)
        assert sorted(pair.bodies(pair.target)) == [b"a", b"b", b"c", b"d"], (first, *order)
        assert dict(pair.target.partition.origins) == {}
        recount.check(pair.source.partition)
        recount.check(pair.target.partition)


def test_a_message_on_its_way_is_neither_ready_nor_gone() -> None:
    pair = Pair()
    assert pair.source.take() == [1]
    assert pair.source.partition.table.messages == 5


def test_a_repeat_that_brings_more_adds_only_what_is_new_in_its_order() -> None:
    pair = Pair()
    pair.target.write(pair.arrive([(3, 2)]))
    origin_order: Runs = [(5, 1), (3, 1), (2, 1)]
    pair.target.write(pair.arrive(origin_order))
    granted = pair.target.receive(10)
    assert granted is not None
    assert pair.target.bodies(granted.runs) == [b"b", b"c", b"d", b"a"]
    assert pair.target.partition.origins.arrived(1, [(1, 100)]) == [(2, 4)]


def test_what_a_record_says_of_its_origin_matches_its_messages() -> None:
    pair = Pair()
    pair.target.write(pair.arrive([(3, 1)]))
    origin = Origin(1, "orders", "redrive", [(5, 1), (3, 1), (2, 1)], START_MS, [50, 30, 20], START_MS)
    (written,) = moving.arrive(pair.target.partition, encode([b"d", b"b", b"a"]), origin, START_MS)
    record = written.record
    assert written.batch is not None
    assert written.batch.bodies() == [b"d", b"a"]
    assert getattr(record, "origin", None) == Origin(
        1, "orders", "redrive", [(5, 1), (2, 1)], START_MS, [50, 20], START_MS
    )


def test_only_ready_messages_start() -> None:
    rig = Rig()
    rig.send_plain(4)
    rig.receive(1)
    rig.send(encode([b"x"], delays_ms=[1_000]))
    assert rig.carry_out(moving.start_move(rig.partition, [(1, 2), (2, 4)], "other", START_MS)) == 3
    assert rig.partition.moves == {("other", "redrive"): [(2, 3)]}
    assert rig.carry_out(moving.start_move(rig.partition, [(1, 5)], "other", START_MS)) == 0


def test_moved_messages_are_ready_at_once_keep_group_and_priority_and_live_on() -> None:
    rig = Rig(QueueSettings(delay_ms=1_000, default_ttl_ms=1_000))
    batch = encode(
        [b"x", b"y"],
        groups=[b"g", b""],
        priorities=[0, 7],
        delays_ms=[500, 500],
        ttls_ms=[10, 10],
        deduplication_ids=[b"i", b"i"],
    )
    origin = Origin(1, "orders", "expired", [(1, 2)], 0, [0, 0], START_MS)
    rig.write(moving.arrive(rig.partition, batch, origin, START_MS))
    rig.upkeep(START_MS + 900)
    assert rig.take() == [2, 1]
    assert len(rig.partition.groups) == 1


@pytest.mark.parametrize("reason", ["max-receives", "overflow", "redrive"])
def test_an_abandoned_move_leaves_the_messages_ready(reason: Reason) -> None:
    rig = Rig()
    rig.send_plain(5)
    rig.write([PendingRecord(MoveStarted([(2, 3)], "nowhere", reason, START_MS))])
    rig.write(moving.abandon_move(rig.partition, [(2, 2)], START_MS))
    assert rig.partition.moves == {("nowhere", reason): [(4, 1)]}
    assert rig.take() == [1, 2, 3, 5]
    assert moving.finish_move(rig.partition, [(2, 2)], START_MS) == [], "what was abandoned cannot finish"


def test_an_abandoned_move_of_expired_messages_ends_them() -> None:
    rig = Rig(QueueSettings(default_ttl_ms=100, dead_letter_queue="dead"))
    rig.send_plain(2)
    rig.upkeep(START_MS + 100)
    rig.write(moving.abandon_move(rig.partition, [(1, 2)], START_MS + 100))
    assert rig.partition.table.messages == 0
    assert rig.partition.moves == {}
    assert rig.partition.totals.expired == 2


def test_totals_tell_dead_letters_from_redriven_ones() -> None:
    pair = Pair()
    pair.finish()
    assert pair.source.partition.totals.dead_lettered == 0
    rig = Rig(QueueSettings(default_ttl_ms=100, dead_letter_queue="dead"))
    rig.send_plain(2)
    rig.upkeep(START_MS + 100)
    rig.write(moving.finish_move(rig.partition, [(1, 2)], START_MS + 100))
    assert rig.partition.totals.dead_lettered == 2


def test_a_move_to_the_queue_itself_gives_the_messages_new_numbers() -> None:
    """A dead letter whose way back is gone stays where it is, as a message that says so."""
    rig = Rig()
    rig.send_plain(1)
    rig.carry_out(moving.start_move(rig.partition, [(1, 1)], "gone", START_MS))
    origin = Origin(1, "gone", "queue-deleted", [(1, 1)], START_MS, [0], START_MS)
    rig.write(moving.arrive(rig.partition, encode([b"x"]), origin, START_MS))
    rig.write(moving.finish_move(rig.partition, [(1, 1)], START_MS))
    rig.write(moving.forget_origins(rig.partition, 1, [(1, 1)], START_MS))
    assert rig.take() == [2]


def test_late_messages_of_several_batches_move_together() -> None:
    partition = large_states.late_batches(3)
    assert partition.sorting is not None
    lateness = Lateness(7_000, 5_000, None)
    partition.apply(MoveStarted([(1, 2)], "orders.late", "late", START_MS, lateness))
    assert [partition.sorting.lateness_of(first) == lateness for first in (1, 2, 3)] == [True, True, False]
