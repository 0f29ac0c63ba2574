"""The turns of a node: what is done in which order, over a node whose every call is written down."""

from __future__ import annotations

from typing import cast

from penstock.backend.node.node_turns import NodeTurns
from penstock.backend.node.outbox import HandedAnswer, HandOver
from penstock.model.batch import Buffer
from penstock.storage.flush import Flush
from penstock.storage.job import Job


class World:
    """A node with so much to do, and the hands of its turns."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.flushes: list[str] = []
        self.jobs: list[str] = []
        self.output: list[str] = []
        self.is_congested = False
        self.wakeup_ms: int | None = None
        self.goes_on = False
        self.is_quick = False
        """Whether the flush of a lone request has ended as soon as it is handed out."""
        self.time_ms = 1_000
        self.turns = NodeTurns(self, self)

    def turn(self) -> list[str]:
        """What a turn does."""
        self.did.clear()
        self.turns.run()
        return [one for one in self.did if one != "ship"]

    # -- the node --------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        self.did.append(f"tick {now_ms}")

    def take_flush(self) -> Flush | None:
        return cast(Flush, self.flushes.pop(0)) if self.flushes else None

    def flushed(self, flush: Flush, now_ms: int) -> None:
        self.did.append(f"flushed {flush}")
        self.output.append(f"answer of {flush}")

    def take_jobs(self) -> list[Job]:
        jobs, self.jobs = self.jobs, []
        return cast(list[Job], jobs)

    def job_done(self, job: Job, now_ms: int) -> None:
        self.did.append(f"done {job}")

    def take_output(self) -> list[tuple[int, list[Buffer]]]:
        output, self.output = self.output, []
        return [(1, [one.encode()]) for one in output]

    def take_handed(self) -> list[tuple[HandOver, list[HandedAnswer]]]:
        return []

    def congested(self) -> bool:
        return self.is_congested

    def next_wakeup_ms(self) -> int | None:
        return self.wakeup_ms

    def has_more(self) -> bool:
        return self.goes_on

    # -- the hands -------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self.time_ms

    def run_flush(self, flush: Flush, *, alone: bool) -> bool:
        self.did.append(f"flush {flush}{' alone' if alone else ''}")
        return alone and self.is_quick

    def run_job(self, job: Job) -> None:
        self.did.append(f"job {job}")

    def write(self, connection: int, buffers: list[Buffer], /) -> None:
        self.did.append(f"write {bytes(buffers[0]).decode()}")

    def ship(self) -> None:
        self.did.append("ship")

    def congestion_changed(self, congested: bool, /) -> None:
        self.did.append("congested" if congested else "no longer congested")

    def set_timer(self, delay_ms: int) -> None:
        self.did.append(f"timer {delay_ms}")


def test_the_first_turn_ticks_and_answers_leave_before_jobs_begin() -> None:
    world = World()
    world.output, world.jobs, world.flushes = ["hello"], ["checkpoint"], ["one"]
    assert world.turn() == ["tick 1000", "flush one", "write hello", "job checkpoint"]


def test_others_hear_of_what_was_appended_while_the_flush_begins() -> None:
    world = World()
    world.flushes = ["one"]
    world.turns.run()
    assert world.did.index("ship") < world.did.index("flush one")


def test_one_flush_is_under_way_at_a_time() -> None:
    world = World()
    world.flushes = ["one", "two"]
    world.turn()
    assert world.turn() == []
    world.did.clear()
    world.turns.flush_ended(cast(Flush, "one"))
    assert world.turn() == ["flush two", "write answer of one"]


def test_a_lone_request_that_is_on_disk_at_once_is_answered_in_the_same_turn() -> None:
    world = World()
    world.turn()
    world.is_quick = True
    world.flushes, world.turns.requests = ["one", "two"], 1
    assert world.turn() == ["flush one alone", "flushed one", "write answer of one", "flush two"]
    assert not world.turns.is_quiet


def test_a_request_beside_others_or_beside_answers_is_not_alone() -> None:
    world = World()
    world.turn()
    world.flushes, world.turns.requests = ["one"], 2
    assert world.turn() == ["flush one"]
    world.turns.flush_ended(cast(Flush, "one"))
    world.flushes, world.turns.requests = ["two"], 1
    assert world.turn() == ["flush two", "write answer of one"]


def test_no_job_begins_once_it_is_closing_and_those_under_way_are_waited_for() -> None:
    world = World()
    world.jobs = ["first"]
    world.turn()
    world.turns.is_closing = True
    world.jobs = ["second"]
    assert world.turn() == []
    assert not world.turns.is_quiet
    world.turns.job_ended(cast(Job, "first"))
    assert world.turns.is_quiet


def test_congestion_is_told_when_it_changes() -> None:
    world = World()
    world.turn()
    world.is_congested = True
    assert world.turn() == ["congested"]
    assert world.turn() == []
    world.is_congested = False
    assert world.turn() == ["no longer congested"]


def test_the_timer_is_set_for_the_soonest_moment_only() -> None:
    world = World()
    world.wakeup_ms = 1_500
    assert world.turn() == ["tick 1000", "timer 500"]
    world.wakeup_ms = 1_800
    assert world.turn() == []
    world.wakeup_ms = 1_200
    assert world.turn() == ["timer 200"]
    world.time_ms = 1_200
    world.turns.timer_is_over()
    world.wakeup_ms = None
    world.did.clear()
    assert world.turn() == ["tick 1200"]


def test_work_that_goes_on_gets_a_turn_a_millisecond_unless_a_flush_is_under_way() -> None:
    world = World()
    world.goes_on = True
    assert world.turn() == ["tick 1000", "timer 1"]
    world.turns.timer_is_over()
    world.flushes = ["one"]
    assert world.turn() == ["flush one"]
