"""The line of a partition: order, patience, what is asked again and what is not."""

from __future__ import annotations

import math
from random import Random

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.line import Line
from penstock.routing.line_call import Call, State
from penstock.routing.partition_line import DEPOSED_SECONDS
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import ClaimIds, Delivery, Purge, Receive, Redrive, Request, Send
from tests.routing.line_world import LineWorld

RETRIED = (ErrorCode.NOT_PRIMARY, ErrorCode.SHUTTING_DOWN, ErrorCode.NOT_ENOUGH_REPLICAS)


def sends(world: LineWorld, *numbers: int, follow: bool = False) -> list[list[Outcome]]:
    """Sends of producer 7; with `follow` each says which it comes after."""
    told: list[list[Outcome]] = []
    for place, number in enumerate(numbers):
        outcomes: list[Outcome] = []
        after = numbers[place - 1] if follow and place else 0
        world.start(Send(1, 7, number, after=after), outcomes.append)
        told.append(outcomes)
    return told


def stored(world: LineWorld) -> list[int]:
    return [number for _, number in world.log]


def test_a_send_waits_for_those_that_are_under_way_to_the_deposed_leader() -> None:
    world = LineWorld()
    first = sends(world, 1)
    world.lead("b")
    world.publish()
    later = sends(world, 2, 3)
    world.wait(DEPOSED_SECONDS - 0.01)
    assert [node for node, _ in world.transmitted] == ["a"]  # the old leader may still answer
    world.wait(0.02)
    world.serve()
    assert stored(world) == [1, 2, 3]
    assert all(isinstance(outcome, Reply) for outcomes in first + later for outcome in outcomes)


def test_a_send_does_not_pass_those_whose_connection_is_lost_though_nobody_was_told_yet() -> None:
    world = LineWorld()
    told = sends(world, 1, 2)
    world.break_off("a")
    world.connect("a")  # connected again before the loss is told
    told += sends(world, 3)
    world.serve()
    assert [number for _, number in world.log] == [1, 2]  # what had arrived
    world.log.clear()
    world.tell_lost()
    world.wait(0.2)
    world.serve()
    assert stored(world) == [1, 2, 3]
    assert [len(outcomes) for outcomes in told] == [1, 1, 1]


def test_what_comes_back_takes_its_place_before_those_that_came_later() -> None:
    world = LineWorld()
    sends(world, 1, 2)
    wire = world.break_off("a")
    assert wire is not None
    wire.requests.clear()
    sends(world, 3, 4)
    world.tell_lost()
    world.connect("a")
    world.wait(0.2)
    world.serve()
    assert stored(world) == [1, 2, 3, 4]


@pytest.mark.parametrize("code", RETRIED)
def test_what_follows_a_refused_send_is_asked_again_behind_it(code: ErrorCode) -> None:
    world = LineWorld()
    told = sends(world, 1, 2, 3, follow=True)
    world.refusals.append(code)
    world.serve()
    assert stored(world) == []
    world.wait(1.0)
    world.serve()
    assert stored(world) == [1, 2, 3]
    assert all(isinstance(outcomes[0], Reply) for outcomes in told)


def test_what_follows_a_refused_send_is_not_asked_again_in_vain() -> None:
    world = LineWorld()
    sends(world, 1, 2, follow=True)
    wire = world.wires()[0]
    world.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.read(wire)
    world.read(wire)
    world.hear(wire, 1)  # that 2 is out of order is heard before why
    world.wait(0.5)
    assert len(world.transmitted) == 2
    world.hear(wire)
    world.wait(0.5)
    world.serve()
    assert len(world.transmitted) == 4
    assert stored(world) == [1, 2]


NOT_ASKED_AGAIN = [
    *(ErrorCode.OVERLOADED, ErrorCode.DISK_FULL, ErrorCode.CLOCK_UNCERTAIN),
    *(ErrorCode.STAMP_IN_FUTURE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.BAD_REQUEST, ErrorCode.INTERNAL),
]


@pytest.mark.parametrize("code", NOT_ASKED_AGAIN)
def test_what_follows_a_send_that_was_refused_is_not_stored_before_its_client_knows(code: ErrorCode) -> None:
    """If the answer is lost the client sends the first one again, and the reason may have passed by then."""
    world = LineWorld()
    told = sends(world, 1, 2, 3, follow=True)
    world.refusals.append(code)
    world.serve()
    assert stored(world) == []
    codes = [outcome.code for outcomes in told for outcome in outcomes if isinstance(outcome, PenstockError)]
    assert codes == [code, ErrorCode.OUT_OF_ORDER, ErrorCode.OUT_OF_ORDER]


@pytest.mark.parametrize("answers", [True, False])
def test_what_follows_a_refused_send_is_not_asked_of_the_next_leader(answers: bool) -> None:
    """Neither where the node that was asked says that it leads no more, nor where it says nothing."""
    world = LineWorld()
    told = sends(world, 1, 2, 3, follow=True)
    world.refusals.append(ErrorCode.DISK_FULL)
    (wire,) = world.wires()
    world.read(wire)
    world.hear(wire)
    world.lead("b")
    world.publish()
    if answers:
        world.serve()
    world.wait(DEPOSED_SECONDS + 0.1)
    world.serve()
    assert stored(world) == []
    assert all(isinstance(outcome, PenstockError) for outcomes in told for outcome in outcomes)
    assert [len(outcomes) for outcomes in told] == [1, 1, 1]
    sends(world, 1, 2, 3, follow=True)  # as their client does
    world.serve()
    assert stored(world) == [1, 2, 3]


def test_sends_that_follow_nothing_are_not_refused_for_others() -> None:
    world = LineWorld()
    told = sends(world, 1, 2)
    world.refusals.append(ErrorCode.OVERLOADED)
    world.serve()
    assert stored(world) == [2]
    assert isinstance(told[1][0], Reply)


def test_when_patience_ends_what_follows_is_told_so_too() -> None:
    world = LineWorld()
    world.lead(None)
    world.publish()
    outcomes: list[Outcome] = []
    world.start(Send(1, 7, 1), outcomes.append, patience_ms=1_000)
    world.start(Send(1, 7, 2, after=1), outcomes.append, patience_ms=9_000)
    world.wait(1.1)
    assert [outcome.code for outcome in outcomes if isinstance(outcome, PenstockError)] == [
        ErrorCode.UNREACHABLE,
        ErrorCode.OUT_OF_ORDER,
    ]


@pytest.mark.parametrize("request_", [Purge(1), Redrive(1)])
def test_what_may_have_been_done_is_not_done_twice(request_: Request) -> None:
    world = LineWorld()
    outcomes: list[Outcome] = []
    world.start(request_, outcomes.append)
    world.break_off("a")
    world.tell_lost()
    world.connect("a")
    world.wait(1.0)
    world.serve()
    assert len(world.carried_out) == 1
    assert [outcome.code for outcome in outcomes if isinstance(outcome, PenstockError)] == [
        ErrorCode.UNREACHABLE
    ]


def test_a_receive_that_is_cancelled_while_it_waits_has_nothing() -> None:
    world = LineWorld()
    world.lead(None)
    world.publish()
    outcomes: list[Outcome] = []
    call = world.start(Receive(1, wait_ms=5_000), outcomes.append)
    world.lines.cancel(call)
    world.run()
    (outcome,) = outcomes
    assert isinstance(outcome, Reply)
    assert isinstance(outcome.answer, Delivery)
    assert not world.cancelled


def test_a_receive_waits_in_all_as_long_as_it_was_to() -> None:
    world = LineWorld()
    world.lead(None)
    world.publish()
    world.start(Receive(1, wait_ms=5_000), lambda _: None)
    world.wait(2.0)
    world.lead("b")
    world.publish()
    ((_, first),) = world.transmitted
    assert isinstance(first, Receive)
    assert first.wait_ms == 5_000  # its first attempt
    world.lead("a")
    world.publish()
    world.wait(DEPOSED_SECONDS)
    assert isinstance(second := world.transmitted[-1][1], Receive)
    assert second.wait_ms == 2_500


def test_reads_do_not_wait_for_sends() -> None:
    world = LineWorld()
    sends(world, 1)
    world.lead("b")
    world.publish()
    sends(world, 2)
    world.start(Receive(1), lambda _: None)
    assert [type(request) for _, request in world.transmitted] == [Send, Receive]


def test_what_waits_for_a_partition_that_is_gone_is_told_so() -> None:
    world = LineWorld()
    world.lead(None)
    world.publish()
    told = sends(world, 1, 2, follow=True)
    world.delete()
    world.wait(2.0)
    codes = [outcome.code for outcomes in told for outcome in outcomes if isinstance(outcome, PenstockError)]
    assert codes == [ErrorCode.QUEUE_NOT_FOUND, ErrorCode.QUEUE_NOT_FOUND]
    assert not world.lines._lines
    assert not world.lines._looked


def test_the_store_is_asked_once_a_second_while_requests_wait() -> None:
    world = LineWorld()
    world.lead(None)
    world.publish()
    sends(world, 1, 2, 3)
    world.wait(3.5)
    assert len(world.looked) == 4


def test_whoever_waits_when_the_front_end_stops_is_told() -> None:
    world = LineWorld()
    under_way = sends(world, 1)
    world.lead("b")
    world.publish()
    waiting = sends(world, 2)
    world.lines.close()
    world.run()
    assert [len(outcomes) for outcomes in under_way + waiting] == [0, 1]
    world.break_off("a")
    world.tell_lost()
    assert [len(outcomes) for outcomes in under_way + waiting] == [1, 1]


def test_that_a_send_has_failed_is_told_before_anything_that_lets_others_go_on() -> None:
    """Who is told that its ids are granted asks for its send at once: it must know by then that the one before it has failed."""
    world = LineWorld()
    told: list[str] = []
    world.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.start(Send(1, 7, 1), lambda _: told.append("send"), patience_ms=1_000)
    world.serve()
    world.start(ClaimIds(1, [b"id"], [1], [0]), lambda _: told.append("claim"))
    (wire,) = world.wires()
    world.read(wire)
    world.lead(None)
    world.publish()
    world.now = 1.5  # the clock is looked at late
    world.hear(wire)
    assert told == ["send", "claim"]


def test_copies_over_another_connection_do_not_hold_up_the_line() -> None:
    """The first copy of 2 waited for the second copy of 1, and that one for the first copy of 2."""
    world = LineWorld()
    world.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    told = sends(world, 1, 2, follow=True)
    world.serve()
    told += sends(world, 1, 2, follow=True)
    for _ in range(50):
        world.wait(0.01)
        world.serve()
    assert [isinstance(outcome, Reply) for outcomes in told for outcome in outcomes] == [True] * 4
    assert stored(world) == [1, 2]


def test_a_send_does_not_pass_a_copy_of_the_one_that_it_follows() -> None:
    """The first copy of 1 is refused and may come again: 2 must not be stored before the second copy of it."""
    world = LineWorld()
    world.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    told = sends(world, 1, 2, follow=True)
    world.serve()
    told += sends(world, 1)
    world.refusals.append(ErrorCode.THROTTLED)
    for _ in range(200):
        world.wait(0.05)
        world.serve()
    assert stored(world) == [1]
    outcome = told[1][0]
    assert isinstance(outcome, PenstockError)
    assert outcome.code is ErrorCode.OUT_OF_ORDER


def test_who_follows_a_send_is_found_in_mixed_lines_as_in_orderly_ones() -> None:
    """The short way of an orderly line gives what looking at every send gives."""
    dice = Random(7)
    for _ in range(300):
        line, calls = Line(1), list[Call]()
        numbers = dice.choices(range(1, 7), k=dice.randint(1, 8))
        for number in numbers if dice.random() < 0.5 else sorted(numbers):
            call = Call(
                Ask(Send(1, 7, number, after=dice.choice((0, max(number - 1, 0)))), partition=1), print, 0.0
            )
            line.enter(call)
            calls.append(call)
            if dice.random() < 0.2:
                line.leave(calls.pop(dice.randrange(len(calls))))
        for call in calls:
            every = [
                one
                for one in calls
                if one is not call and one.after and (one.before is call or one.predecessor() is call)
            ]
            assert set(map(id, line.followers(call))) == set(map(id, every))


def test_a_receive_that_was_cancelled_is_not_asked_again_of_the_next_primary() -> None:
    """It would wait there for as long as it said, and nothing would end it."""
    world = LineWorld()
    world.publish()
    told: list[Outcome] = []
    call = world.start(Receive(1, wait_ms=3_600_000), told.append)
    world.lines.cancel(call)
    world.lines.take()
    world.lines.answered(call, call.attempt, PenstockError(ErrorCode.UNREACHABLE, "it is gone"), world.now)
    world.lines.take()
    assert call.state is State.ENDED


def test_a_partition_that_nobody_leads_counts_as_the_busiest() -> None:
    world = LineWorld()
    sends(world, 1)
    assert world.lines.load(1) == 1
    world.leader = None
    world.publish()
    assert world.lines.load(1) == math.inf
