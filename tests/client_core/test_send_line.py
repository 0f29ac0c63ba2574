"""The line of what a client sends to a queue: order, pauses, numbers, giving up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client_core.send_line import NUMBERS_IN_FLIGHT, OUTLIVED_SECONDS
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Failed, Send
from tests.backend.harness import NodeHarness
from tests.client_core.sending_world import TIMEOUT, Batch, SendingWorld

PASSING = (ErrorCode.THROTTLED, ErrorCode.NOT_PRIMARY, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNREACHABLE)


def submitted(world: SendingWorld, count: int) -> list[Batch]:
    batches = [Batch(label) for label in range(count)]
    for batch in batches:
        batch.submit(world)
    return batches


def labels(world: SendingWorld, queue_id: int | None = None) -> list[int]:
    return [label for queue, label in world.log if queue_id is None or queue == queue_id]


def test_what_was_under_way_while_the_computer_slept_for_long_is_not_sent_again() -> None:
    world = SendingWorld()
    world.connect()
    batches = submitted(world, 2)
    world.lose()  # the server has stored them, and nobody heard it
    world.asleep = OUTLIVED_SECONDS + 1
    batches += submitted(world, 1)
    world.connect()
    world.serve()
    assert [request.number for request in world.sent] == [1, 2, 3]
    assert [batch.error.code for batch in batches[:2] if batch.error] == [ErrorCode.UNREACHABLE] * 2
    assert batches[2].result is not None, "it was never under way before"


def test_what_slept_for_a_short_while_is_sent_again() -> None:
    world = SendingWorld()
    world.connect()
    batches = submitted(world, 2)
    world.lose()
    world.asleep = OUTLIVED_SECONDS / 2
    world.connect()
    world.serve()
    assert all(batch.result is not None for batch in batches)


def test_what_was_refused_before_the_computer_slept_is_sent_again() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(ErrorCode.THROTTLED)
    (batch,) = submitted(world, 1)
    world.serve()
    world.lose()
    world.asleep = OUTLIVED_SECONDS + 1
    world.connect()
    world.wait(1.0)
    world.serve()
    assert batch.result is not None


def test_a_server_remembers_a_producer_for_longer_than_its_client_sends_again() -> None:
    node = NodeHarness()
    queue, body = node.create("orders"), encode_parts([b"one"])
    node.call(Send(queue, 7, 1), body)
    for number in range(1, round(OUTLIVED_SECONDS / 30) + 1):  # others go on
        node.advance(30_000)
        node.call(Send(queue, 8, number), body)
    before = node.show("orders").statistics.ready
    node.call(Send(queue, 7, 1), body)
    assert node.show("orders").statistics.ready == before, "it is not stored twice"


@pytest.mark.parametrize("code", PASSING)
def test_what_is_refused_for_a_while_keeps_its_place(code: ErrorCode) -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(code)
    batches = submitted(world, 5)
    world.serve()
    assert labels(world) == []
    late = Batch(5)
    late.submit(world)  # it waits with the others
    world.serve()
    assert labels(world) == []
    world.wait(1.0)
    world.serve()
    assert labels(world) == [0, 1, 2, 3, 4, 5]
    assert all(batch.result is not None for batch in [*batches, late])
    assert len(world.sent) == 5 + 6


def test_what_fails_for_good_is_told_and_the_others_go_on_at_once() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(ErrorCode.MESSAGE_TOO_LARGE)
    batches = submitted(world, 3)
    world.serve()
    assert batches[0].error is not None
    assert labels(world) == [1, 2]
    assert len(world.sent) == 3


@pytest.mark.parametrize("code", [ErrorCode.OVERLOADED, ErrorCode.DISK_FULL, ErrorCode.QUEUE_FULL])
def test_what_the_caller_has_to_decide_about_is_told_and_the_others_go_again_at_once(code: ErrorCode) -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(code)
    batches = submitted(world, 3)
    world.serve()
    assert batches[0].error is not None
    assert labels(world) == [1, 2]
    assert world.time == 0.0


def test_a_batch_whose_refusal_is_lost_with_the_connection_comes_again_before_those_behind_it() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(ErrorCode.QUEUE_FULL)
    submitted(world, 2)
    world.read(world.connection)
    world.read(world.connection)
    world.lose()
    world.connect()  # there is room by now
    world.serve()
    assert labels(world) == [0, 1]


def test_after_a_lost_connection_all_are_sent_again_in_order_the_first_after_nothing() -> None:
    world = SendingWorld()
    world.connect()
    submitted(world, 4)
    world.read(world.connection)
    world.hear()
    world.lose()
    world.sent.clear()
    world.connect()
    assert [(request.number, request.after) for request in world.sent] == [(2, 0), (3, 2), (4, 3)]
    world.serve()
    assert labels(world) == [0, 1, 2, 3]


def test_all_give_up_at_about_the_same_time_not_one_after_the_other() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.extend([ErrorCode.NOT_ENOUGH_REPLICAS] * 1_000)
    batches = submitted(world, 8)
    for _ in range(400):
        world.serve()
        world.wait(0.05)
    assert all(batch.error is not None for batch in batches)
    assert all(
        batch.error.code is ErrorCode.NOT_ENOUGH_REPLICAS for batch in batches if batch.error is not None
    )
    assert labels(world) == []
    world = SendingWorld()
    world.connect()
    world.refusals.extend([ErrorCode.NOT_ENOUGH_REPLICAS] * 1_000)
    batches = submitted(world, 8)
    while not all(batch.done for batch in batches):
        world.serve()
        world.wait(0.05)
    assert world.time < TIMEOUT + 3.0


def test_without_a_connection_for_the_timeout_they_fail() -> None:
    world = SendingWorld()
    batches = submitted(world, 2)
    world.wait(TIMEOUT + 0.1)
    assert all(batch.error is not None for batch in batches)
    assert not list(world.line.unanswered())


def test_a_queue_that_was_made_again_gets_them_in_order_before_what_comes_later() -> None:
    world = SendingWorld()
    world.connect()
    submitted(world, 3)
    world.queue_id = 9
    world.serve()
    late = Batch(3)
    late.submit(world)
    assert labels(world) == []
    world.answer_lookup()
    world.serve()
    assert labels(world, 9) == [0, 1, 2, 3]
    assert [request.number for request in world.sent if request.queue_id == 9] == [4, 5, 6, 7]


def test_late_news_of_the_queue_before_makes_no_number_come_twice() -> None:
    """What is sent under a number that the server knows passes for stored, and is acknowledged."""
    world = SendingWorld()
    world.connect()
    world.queue_id = 9
    world.found(9)
    submitted(world, 3)
    world.serve()
    world.found(1)  # said before it was deleted
    late = Batch(3)
    late.submit(world)
    world.serve()
    world.answer_lookup()
    world.serve()
    assert late.result is not None
    assert labels(world, 9) == [0, 1, 2, 3]


def test_late_news_of_the_queue_before_makes_no_batch_come_twice() -> None:
    world = SendingWorld()
    world.connect()
    (batch,) = submitted(world, 1)
    connection = world.connection
    assert connection is not None
    world.read(connection)
    request_id, _ = connection.answers.pop()  # the front end does not know what became of it
    connection.answers.append((request_id, Failed(ErrorCode.UNREACHABLE, "the node was lost")))
    world.hear()
    world.found(9)
    world.wait(1.0)
    world.serve()
    assert world.sent[-1].queue_id == 9
    world.answer_lookup()
    world.serve()
    assert batch.result is not None
    assert labels(world) == [0]


def test_a_front_end_that_had_not_heard_of_the_queue_is_asked_once_more() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(ErrorCode.QUEUE_NOT_FOUND)
    submitted(world, 2)
    world.serve()
    world.answer_lookup()
    world.serve()
    assert labels(world) == [0, 1]
    assert [request.number for request in world.sent] == [1, 2, 1, 2]


def test_a_queue_that_is_gone_fails_all() -> None:
    world = SendingWorld()
    world.connect()
    batches = submitted(world, 3)
    world.queue_id = 0
    world.serve()
    world.answer_lookup()
    assert [batch.error.code for batch in batches if batch.error is not None] == [
        ErrorCode.QUEUE_NOT_FOUND
    ] * 3


def test_what_is_refused_after_the_queue_was_found_gone_fails_too() -> None:
    world = SendingWorld()
    world.connect()
    batches = submitted(world, 2)
    world.queue_id = 0
    world.read(world.connection)
    world.hear()
    world.answer_lookup()  # it overtakes the refusal of the second
    assert batches[0].error is not None
    world.serve()
    world.answer_lookup()
    assert batches[1].error is not None
    assert batches[1].error.code is ErrorCode.QUEUE_NOT_FOUND


def test_what_comes_after_the_queue_was_found_gone_looks_again() -> None:
    world = SendingWorld()
    world.connect()
    submitted(world, 1)
    world.queue_id = 0
    world.serve()
    world.answer_lookup()
    world.queue_id = 4
    late = Batch(7)
    late.submit(world)
    world.answer_lookup()
    world.serve()
    assert labels(world, 4) == [7]


def test_what_a_limit_refuses_after_the_queue_was_found_gone_fails_too() -> None:
    world = SendingWorld()
    world.connect()
    batches = submitted(world, 2)
    world.queue_id = 0
    world.read(world.connection)
    world.hear()
    world.answer_lookup()
    world.refusals.append(ErrorCode.THROTTLED)
    world.serve()
    world.answer_lookup()
    world.wait(1.0)
    assert all(batch.error is not None for batch in batches)


def test_unanswered_numbers_stay_within_what_a_server_remembers() -> None:
    world = SendingWorld()
    world.connect()
    submitted(world, NUMBERS_IN_FLIGHT + 30)
    assert len(world.sent) == NUMBERS_IN_FLIGHT
    world.read(world.connection)
    world.hear()
    assert len(world.sent) == NUMBERS_IN_FLIGHT + 1
    world.serve()
    assert labels(world) == list(range(NUMBERS_IN_FLIGHT + 30))


def test_what_nobody_waits_for_is_not_sent_again_and_holds_nobody_up() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(ErrorCode.THROTTLED)
    batches = submitted(world, 3)
    world.serve()
    batches[0].wanted = batches[2].wanted = False
    world.wait(1.0)
    world.serve()
    assert labels(world) == [1]
    assert not list(world.line.unanswered())


def test_a_server_that_always_says_out_of_order_is_not_asked_without_a_pause() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.extend([ErrorCode.OUT_OF_ORDER] * 3)
    submitted(world, 1)
    world.serve()
    assert len(world.sent) == 1
    world.wait(2.0)
    world.serve()
    assert len(world.sent) == 2


REFUSED_AT_ONCE = (ErrorCode.DISK_FULL, ErrorCode.OVERLOADED, ErrorCode.QUEUE_FULL)


@pytest.mark.parametrize("code", REFUSED_AT_ONCE)
def test_what_may_be_stored_is_sent_again_where_another_would_be_told_refused(code: ErrorCode) -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.extend([ErrorCode.UNREACHABLE, code, code])
    (batch,) = submitted(world, 1)
    world.serve()
    world.wait(1.0)
    world.serve()
    assert not batch.done
    world.wait(1.0)
    world.serve()
    world.wait(1.0)
    world.serve()
    assert batch.result is not None
    assert labels(world) == [0]
    assert {request.number for request in world.sent} == {1}


@pytest.mark.parametrize("code", REFUSED_AT_ONCE)
def test_what_may_be_stored_is_never_told_to_be_refused(code: ErrorCode) -> None:
    """The front end could not tell what became of the first attempt, and refuses all that follow before it asks the partitions."""
    world = SendingWorld()
    world.connect()
    world.refusals.append(ErrorCode.UNREACHABLE)
    world.refusals.extend([code] * 1_000)
    (batch,) = submitted(world, 1)
    while not batch.done:
        world.serve()
        world.wait(0.5)
    assert batch.error is not None
    assert batch.error.code is ErrorCode.UNREACHABLE
    assert code in str(batch.error)
    assert world.time < TIMEOUT + 3.0


def test_what_was_lost_with_its_connection_is_not_told_to_be_refused() -> None:
    world = SendingWorld()
    world.connect()
    (batch,) = submitted(world, 1)
    world.read(world.connection)  # it is stored, and the answer is lost
    world.lose()
    world.connect()
    world.refusals.extend([ErrorCode.DISK_FULL] * 1_000)
    while not batch.done:
        world.serve()
        world.wait(0.5)
    assert labels(world) == [0]
    assert batch.error is not None
    assert batch.error.code is ErrorCode.UNREACHABLE


def test_what_fails_for_good_after_an_attempt_that_may_be_stored_says_so() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.extend([ErrorCode.UNREACHABLE, ErrorCode.ACCESS_DENIED])
    (batch,) = submitted(world, 1)
    world.serve()
    world.wait(1.0)
    world.serve()
    assert batch.error is not None
    assert batch.error.code is ErrorCode.ACCESS_DENIED
    assert "may or may not have stored the batch" in batch.error.message


def test_what_may_be_stored_in_a_queue_that_is_gone_is_not_told_to_be_refused() -> None:
    world = SendingWorld()
    world.connect()
    world.refusals.append(ErrorCode.UNREACHABLE)
    batches = submitted(world, 2)
    world.serve()
    world.queue_id = 0
    world.wait(1.0)
    world.serve()
    world.answer_lookup()
    codes = [batch.error.code for batch in batches if batch.error is not None]
    assert codes == [ErrorCode.UNREACHABLE, ErrorCode.QUEUE_NOT_FOUND]


def test_what_is_under_way_when_the_link_ends_is_not_told_to_be_refused() -> None:
    world = SendingWorld()
    never_written = Batch(0)
    never_written.submit(world)
    closed = PenstockError(ErrorCode.BAD_REQUEST, "this client is closed")
    world.table.fail_all(closed)
    assert never_written.error is closed
    world.connect()
    (written,) = submitted(world, 1)
    world.table.fail_all(closed)
    assert written.error is not None
    assert written.error.code is ErrorCode.UNREACHABLE


EVENTS = st.sampled_from(
    [
        *("send", "send", "send", "read", "read", "hear", "hear", "lose", "connect", "connect", "stray"),
        *("refuse", "wait", "long", "lookup", "remake", "abandon", "old news"),
    ]
)
REFUSALS = (
    *PASSING,
    *(ErrorCode.OVERLOADED, ErrorCode.DISK_FULL, ErrorCode.QUEUE_FULL, ErrorCode.QUEUE_NOT_FOUND),
    *(ErrorCode.SHUTTING_DOWN, ErrorCode.CLOCK_UNCERTAIN, ErrorCode.MESSAGE_TOO_LARGE),
)


@given(st.lists(st.tuples(EVENTS, st.integers(0, 10)), max_size=80))
def test_whatever_happens_batches_are_stored_in_order_once_and_end_once(
    events: list[tuple[str, int]],
) -> None:
    world = SendingWorld()
    batches: list[Batch] = []
    for event, choice in events:
        match event:
            case "send":
                batches.append(Batch(len(batches)))
                batches[-1].submit(world)
            case "read":
                world.read(world.connection)
            case "hear":
                world.hear()
            case "lose":
                world.lose()
            case "connect":
                world.connect()
            case "stray" if world.old:
                world.read(world.old[choice % len(world.old)])
            case "refuse":
                world.refusals.append(REFUSALS[choice])
            case "wait":
                world.wait(0.02 * (choice + 1))
            case "long":
                world.wait(0.4 * (choice + 1))
            case "lookup":
                world.answer_lookup()
            case "remake" if choice < 3:
                world.queue_id += 1
            case "old news":
                world.found(max(1, world.queue_id - choice % 3))
            case "abandon" if batches:
                batches[choice % len(batches)].wanted = False
            case _:
                pass
        check(world, batches)
    world.refusals.clear()
    for _ in range(30):
        world.connect()
        world.serve()
        world.answer_lookup()
        world.wait(0.5)
    world.serve()
    check(world, batches)
    assert not list(world.line.unanswered())
    assert not world.table
    assert not world.line.waits
    assert all(batch.outcomes == 1 or not batch.wanted or batch.done for batch in batches)


def check(world: SendingWorld, batches: list[Batch]) -> None:
    """What is stored is in order, but for what was given up while its fate was unknown, or left alone."""
    certain = [batch for batch in batches if batch.error is None and batch.wanted]
    for queue_id in range(1, world.queue_id + 1):
        stored = [label for label in labels(world, queue_id) if batches[label] in certain]
        assert stored == sorted(set(stored))
    everywhere = labels(world)
    for batch in certain:
        if batch.result is not None:
            assert batch.label in everywhere
    assert all(batch.outcomes <= 1 for batch in batches)
    for batch in batches:
        if batch.error is not None and batch.error.code is not ErrorCode.UNREACHABLE:
            assert batch.label not in everywhere or "may have stored" in batch.error.message
