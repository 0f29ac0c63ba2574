"""Sends of one producer to the partitions of an ordered queue: in the order in which they came, whoever has ids to claim."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from penstock.client_core.send_line import SendCall, SendLine
from penstock.cluster.layout.entries import (
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    encode,
    node_key,
    partition_key,
    queue_key,
)
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import Ordering, QueueSettings
from penstock.routing.batch_parts import ordinal_of
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.router import routed
from penstock.routing.send_turns import SendTurns
from penstock.steps.step import Ask, Outcome, Reply, Single
from penstock.wire.messages import Answer, ClaimedIds, ClaimIds, FindIds, FoundIds, Send, SendResult

PARTITIONS = 3
BATCH_IN_A = next(
    name for name in (b"%d" % number for number in range(99)) if ordinal_of(name, PARTITIONS) == 0
)
BATCH_IN_B = next(
    name for name in (b"%d" % number for number in range(99)) if ordinal_of(name, PARTITIONS) == 1
)


class FrontEnd:
    """The router over nodes that answer when the test says so."""

    def __init__(self, ordering: Ordering = "fifo") -> None:
        self.map = ClusterMap()
        settings = QueueSettings(ordering=ordering, partitions=PARTITIONS)
        ids = list(range(2, 2 + PARTITIONS))
        queue = QueueEntry(name="q", queue_id=1, settings=settings, created_ms=1, partitions=ids)
        self.map.apply(queue_key("q"), encode(queue))
        node = NodeEntry(node="a", native="a:1", peers="a:2", started_ms=1)
        self.map.apply(node_key("a"), encode(node))
        for ordinal, partition in enumerate(ids):
            entry = PartitionEntry(
                partition=partition,
                queue_id=1,
                queue="q",
                ordinal=ordinal,
                settings=settings,
                epoch=1,
                serving=1,
                primary="a",
                replicas=["a"],
                in_sync=["a"],
            )
            self.map.apply(partition_key(partition), encode(entry))
        self.context = RoutingContext(self.map, producer=99, now_ms=lambda: 0, load=lambda _: 0.0)
        self.asked: list[tuple[Ask, Callable[[Outcome], None]]] = []
        self.told: dict[int, Outcome] = {}

    def start(self, step: Single, done: Callable[[Any], None]) -> int:
        assert isinstance(step, Ask)
        self.asked.append((step, done))
        return len(self.asked)

    def cancel(self, call: int) -> None:
        raise AssertionError

    def send(self, number: int, *, has_id: bool, after: int = 0, producer: int = 7) -> None:
        """A batch of one message, to the partition of the group."""
        ids = [b"id-%d" % number] if has_id else None
        body = encode_parts([b"%d" % number], groups=[BATCH_IN_A], deduplication_ids=ids)
        request = Send(1, producer, number, after=after)

        def ended(outcome: Outcome) -> None:
            assert number not in self.told
            self.told[number] = outcome

        routed(self.context, request, body, self, ended).start()

    def sent(self) -> list[int]:
        """The numbers of batches that partitions were asked to store, in order."""
        return [ask.request.number for ask, _ in self.asked if isinstance(ask.request, Send)]

    def claims(self) -> list[tuple[Ask, Callable[[Outcome], None]]]:
        """What homes of ids were asked."""
        return [(ask, done) for ask, done in self.asked if isinstance(ask.request, ClaimIds)]

    def grant(self, place: int) -> None:
        """The ids of a send may be stored where they are to go."""
        ask, done = self.claims()[place]
        assert isinstance(ask.request, ClaimIds)
        done(Reply(ClaimedIds(list(ask.request.owners), [1] * len(ask.request.ids))))

    def store_all(self) -> None:
        """Partitions store what they were asked to."""
        for ask, done in self.asked:
            if isinstance(ask.request, Send) and ask.request.number not in self.told:
                done(Reply(SendResult([(ask.request.number, 1)], [], 1)))


def code_of(outcome: Outcome) -> ErrorCode | None:
    return outcome.code if isinstance(outcome, PenstockError) else None


def test_a_send_without_ids_does_not_pass_one_that_has_to_ask_for_its() -> None:
    front_end = FrontEnd()
    front_end.send(1, has_id=True)
    front_end.send(2, has_id=False, after=1)
    front_end.send(3, has_id=True, after=2)
    assert front_end.sent() == []
    front_end.grant(1)  # 3 is ready before 1
    assert front_end.sent() == []
    front_end.grant(0)
    assert front_end.sent() == [1, 2, 3]
    front_end.store_all()
    assert not any(map(code_of, front_end.told.values()))
    assert not front_end.context.turns.lines


def test_others_do_not_wait_for_it() -> None:
    front_end = FrontEnd()
    front_end.send(1, has_id=True)
    front_end.send(2, has_id=False, producer=8)
    front_end.send(3, has_id=False, producer=0)
    assert len(front_end.sent()) == 2


def test_what_follows_a_send_that_failed_before_its_turn_fails_too() -> None:
    front_end = FrontEnd()
    front_end.send(1, has_id=True)
    front_end.send(2, has_id=True, after=1)
    front_end.send(3, has_id=False, after=2)
    front_end.send(4, has_id=False)  # this one says that it follows nothing
    _, done = front_end.claims()[0]
    done(PenstockError(ErrorCode.UNREACHABLE, "its home is away"))
    assert code_of(front_end.told[1]) is ErrorCode.UNREACHABLE
    assert 2 not in front_end.told  # it asks for its ids still
    front_end.grant(1)
    assert [code_of(front_end.told[number]) for number in (2, 3)] == [ErrorCode.OUT_OF_ORDER] * 2
    assert front_end.sent() == [4]
    front_end.store_all()
    assert not front_end.context.turns.lines


def test_it_does_not_matter_why_a_send_failed() -> None:
    """Its client may not hear of it, and send it again when the reason has passed."""
    front_end = FrontEnd()
    front_end.send(1, has_id=True)
    front_end.send(2, has_id=False, after=1)
    _, done = front_end.claims()[0]
    done(PenstockError(ErrorCode.STAMP_IN_FUTURE, "not yet"))
    assert [code_of(front_end.told[number]) for number in (1, 2)] == [
        ErrorCode.STAMP_IN_FUTURE,
        ErrorCode.OUT_OF_ORDER,
    ]
    assert not front_end.context.turns.lines
    front_end.send(2, has_id=False)
    assert front_end.sent() == [2]


def test_one_that_fails_while_others_before_it_wait_takes_those_behind_it_along() -> None:
    front_end = FrontEnd()
    for number in (1, 2, 3):
        front_end.send(number, has_id=number < 3, after=number - 1)
    _, done = front_end.claims()[1]
    done(PenstockError(ErrorCode.UNREACHABLE, "its home is away"))
    front_end.grant(0)
    assert front_end.sent() == [1]
    front_end.store_all()
    assert [code_of(front_end.told[number]) for number in (1, 2, 3)] == [
        None,
        ErrorCode.UNREACHABLE,
        ErrorCode.OUT_OF_ORDER,
    ]
    assert not front_end.context.turns.lines


def test_what_follows_a_send_waits_until_all_its_shares_are_answered_where_one_has_failed() -> None:
    """That share has left its line, and the producer hears of it when the others are answered."""
    front_end = FrontEnd()
    body = encode_parts([b"1", b"1"], groups=[BATCH_IN_A, BATCH_IN_B])
    ended: list[Outcome] = []
    routed(front_end.context, Send(1, 7, 1), body, front_end, ended.append).start()
    front_end.send(2, has_id=True, after=1)  # it came before the failure, and has no place in a line yet
    (_, first), (_, second), _ = front_end.asked
    first(PenstockError(ErrorCode.UNREACHABLE, "no node serves it"))
    front_end.send(3, has_id=False, after=2)
    front_end.grant(0)
    assert [code_of(front_end.told[number]) for number in (2, 3)] == [ErrorCode.OUT_OF_ORDER] * 2
    second(Reply(SendResult([(1, 1)], [], 1)))
    assert [code_of(outcome) for outcome in ended] == [ErrorCode.UNREACHABLE]
    assert front_end.sent() == [1, 1]
    front_end.send(4, has_id=False)
    assert front_end.sent() == [1, 1, 4]
    assert not front_end.context.turns.broken


@pytest.mark.parametrize("has_id", [True, False])
def test_that_holds_on_a_queue_without_an_order_too(has_id: bool) -> None:
    """There ids decide about shares, and a send without ids goes to one partition as a whole."""
    front_end = FrontEnd("best-effort")
    body = encode_parts([b"1", b"1"], deduplication_ids=[BATCH_IN_A, BATCH_IN_B])
    ended: list[Outcome] = []
    routed(front_end.context, Send(1, 7, 1), body, front_end, ended.append).start()
    (_, first), (_, second) = front_end.asked
    first(PenstockError(ErrorCode.UNREACHABLE, "no node serves it"))
    front_end.send(2, has_id=has_id, after=1)
    front_end.send(3, has_id=has_id, after=2)
    assert [code_of(front_end.told[number]) for number in (2, 3)] == [ErrorCode.OUT_OF_ORDER] * 2
    front_end.send(4, has_id=has_id, after=3, producer=8)
    front_end.send(5, has_id=has_id)  # this one says that it follows nothing
    assert front_end.sent() == [1, 1, 4, 5]
    second(Reply(SendResult([(1, 1)], [], 1)))
    assert [code_of(outcome) for outcome in ended] == [ErrorCode.UNREACHABLE]
    front_end.send(6, has_id=has_id, after=5)
    assert front_end.sent() == [1, 1, 4, 5, 6]
    assert not front_end.context.turns.broken
    assert not front_end.context.turns.lines


def test_what_follows_a_send_that_is_asked_again_does_not_pass_it() -> None:
    front_end = FrontEnd()
    front_end.send(1, has_id=True)
    front_end.grant(0)
    _, done = front_end.asked[-1]
    done(PenstockError(ErrorCode.OVERLOADED, "the id is barred"))
    front_end.send(2, has_id=False, after=1)
    assert code_of(front_end.told[2]) is ErrorCode.OUT_OF_ORDER
    assert 1 not in front_end.told


def test_very_many_may_wait_for_one() -> None:
    turns = SendTurns()
    first = turns.take(1, 7, follows=False)
    entered: list[int] = []
    for number in range(5_000):
        turn = turns.take(1, 7, follows=True)

        def go(may_send: bool, number: int = number, turn: Any = turn) -> None:
            assert may_send
            entered.append(number)
            turn.leave()

        turn.enter(go)
    assert entered == []
    first.leave()
    assert entered == list(range(5_000))
    assert not turns.lines


def test_the_answer_for_a_whole_batch_has_the_numbers_of_its_partition() -> None:
    front_end = FrontEnd()
    front_end.send(5, has_id=False)
    front_end.store_all()
    reply = front_end.told[5]
    assert isinstance(reply, Reply)
    assert msgspec.structs.asdict(reply.answer)["runs"] == [(5, 1)]


def test_a_defect_in_one_turn_does_not_end_all_later_ones() -> None:
    turns = SendTurns()
    first, second = (turns.take(1, 7, follows=False) for _ in range(2))

    def fail(may_ask: bool) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        first.enter(fail)
    entered: list[bool] = []
    second.enter(entered.append)
    first.end()
    assert entered == [True]


def test_a_counter_that_no_share_could_carry_is_refused_before_anything_is_asked() -> None:
    front_end = FrontEnd()
    body = encode_parts([b"a", b"b"], groups=[BATCH_IN_A, BATCH_IN_B])
    told: list[Outcome] = []
    request = Send(1, 7, 1, process=1, counter=2**64 - 1)
    routed(front_end.context, request, body, front_end, told.append).start()
    assert [code_of(outcome) for outcome in told] == [ErrorCode.BAD_REQUEST]
    assert front_end.asked == []
    assert not front_end.context.turns.lines


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ((None, ErrorCode.QUEUE_FULL), ErrorCode.UNREACHABLE),
        ((ErrorCode.DISK_FULL, None), ErrorCode.UNREACHABLE),
        ((ErrorCode.QUEUE_FULL, ErrorCode.DISK_FULL), ErrorCode.QUEUE_FULL),
        ((ErrorCode.QUEUE_FULL, ErrorCode.UNREACHABLE), ErrorCode.UNREACHABLE),  # it may be stored
        ((None, ErrorCode.OUT_OF_ORDER), ErrorCode.UNREACHABLE),
        ((ErrorCode.OUT_OF_ORDER, ErrorCode.QUEUE_FULL), ErrorCode.OUT_OF_ORDER),
        ((None, ErrorCode.QUEUE_NOT_FOUND), ErrorCode.UNREACHABLE),
        ((ErrorCode.QUEUE_NOT_FOUND, ErrorCode.UNREACHABLE), ErrorCode.UNREACHABLE),
        ((ErrorCode.QUEUE_NOT_FOUND, ErrorCode.QUEUE_NOT_FOUND), ErrorCode.QUEUE_NOT_FOUND),
        ((None, ErrorCode.STAMP_IN_FUTURE), ErrorCode.STAMP_IN_FUTURE),  # no further attempt would help
    ],
)
def test_a_batch_of_which_a_part_is_stored_is_not_told_to_be_refused(
    codes: tuple[ErrorCode | None, ErrorCode | None], told: ErrorCode
) -> None:
    front_end = FrontEnd()
    body = encode_parts([b"a", b"b"], groups=[BATCH_IN_A, BATCH_IN_B])
    outcomes: list[Outcome] = []
    routed(front_end.context, Send(1, 7, 1), body, front_end, outcomes.append).start()
    for (_, done), code in zip(front_end.asked, codes, strict=True):
        done(PenstockError(code, "no") if code is not None else Reply(SendResult([(1, 1)], [], 1)))
    assert [code_of(outcome) for outcome in outcomes] == [told]


def test_a_second_attempt_that_is_refused_does_not_undo_the_first() -> None:
    """An id was barred in one partition, so the front end asks again; what the other has stored stays so."""
    front_end, outcomes = FrontEnd(), list[Outcome]()
    refuse, other = _with_ids(front_end, outcomes)
    refuse(PenstockError(ErrorCode.OVERLOADED, "the id is barred"))
    other(Reply(SendResult([(1, 1)], [], 1)))
    for ask, done in list(front_end.asked):
        if isinstance(ask.request, FindIds):
            done(Reply(FoundIds([0] * len(ask.request.ids))))
    again = [(ask, done) for ask, done in front_end.asked[6:] if isinstance(ask.request, Send)]
    assert [ask.partition for ask, _ in again] == [2]
    again[0][1](PenstockError(ErrorCode.DISK_FULL, "full"))
    assert [code_of(outcome) for outcome in outcomes] == [ErrorCode.UNREACHABLE]


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER, ErrorCode.UNREACHABLE])
def test_a_share_that_follows_one_that_failed_is_not_asked_again(code: ErrorCode) -> None:
    """Its id was barred in one partition, and in the other it follows a send that was refused: that one has to come first."""
    front_end, outcomes = FrontEnd(), list[Outcome]()
    refuse, other = _with_ids(front_end, outcomes)
    asked = len(front_end.asked)
    refuse(PenstockError(ErrorCode.OVERLOADED, "the id is barred"))
    other(PenstockError(code, "no"))
    assert len(front_end.asked) == asked
    assert [code_of(outcome) for outcome in outcomes] == [code]
    assert is_sent_again(outcomes[0])


def test_a_send_that_follows_another_is_not_asked_again_at_the_front_end() -> None:
    """The bar is lifted, and the client sends it again behind the one before it."""
    front_end, outcomes = FrontEnd(), list[Outcome]()
    refuse, other = _with_ids(front_end, outcomes, after=1)
    for refused in (refuse, other):
        refused(PenstockError(ErrorCode.OVERLOADED, "the id is barred"))
    asked = len(front_end.asked)
    lifts = [(ask, done) for ask, done in front_end.asked if isinstance(ask.request, FindIds)]
    assert lifts
    for ask, done in lifts:
        assert isinstance(ask.request, FindIds)
        done(Reply(FoundIds([0] * len(ask.request.ids))))
    assert len(front_end.asked) == asked
    assert [code_of(outcome) for outcome in outcomes] == [ErrorCode.OUT_OF_ORDER]
    assert is_sent_again(outcomes[0])


class Batch(SendCall):
    """A batch of a client."""

    def head(self, queue_id: int, number: int, after: int) -> Send:
        return Send(queue_id, 7, number, after=after)

    def succeed(self, answer: Answer, body: memoryview) -> None:
        raise AssertionError

    def fail(self, error: PenstockError) -> None:
        raise AssertionError


def is_sent_again(outcome: Outcome) -> bool:
    """Whether the client library sends a batch again that follows another, and was told this."""
    assert isinstance(outcome, PenstockError)
    line, batches = SendLine(10.0, random.Random(1)), [Batch(), Batch()]
    line.renew(1)
    for batch in batches:
        assert line.add(batch, 0.0)
        batch.request()
    line.ended(batches[0])  # the one before it is stored
    return line.refused(batches[1], outcome, 0.0) and line.ready(20.0) == batches[1:]


def _with_ids(
    front_end: FrontEnd, outcomes: list[Outcome], after: int = 0
) -> tuple[Callable[[Outcome], None], ...]:
    """A batch with ids for two partitions, of which all are granted; what answers its shares."""
    body = encode_parts([b"a", b"b"], groups=[BATCH_IN_A, BATCH_IN_B], deduplication_ids=[b"x", b"y"])
    request = Send(1, 7, after + 1, after=after)
    routed(front_end.context, request, body, front_end, outcomes.append).start()
    for place in range(len(front_end.claims())):
        front_end.grant(place)
    (_, refuse), (_, other) = front_end.asked[-2:]
    return refuse, other


def test_a_share_says_the_counter_of_its_own_first_message() -> None:
    front_end = FrontEnd()
    body = encode_parts([b"a", b"b"], groups=[BATCH_IN_A, BATCH_IN_B])
    told: list[Outcome] = []
    routed(front_end.context, Send(1, 7, 1, process=1, counter=10), body, front_end, told.append).start()
    counters = [ask.request.counter for ask, _ in front_end.asked if isinstance(ask.request, Send)]
    assert sorted(counters) == [10, 11]
