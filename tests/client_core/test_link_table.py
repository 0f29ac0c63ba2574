"""What becomes of requests and subscriptions when they are refused, and when connections come and go."""

from __future__ import annotations

from random import Random

from penstock.client_core.call import Call, Stream, Unanswered
from penstock.client_core.link_table import RESENDS_AT_MOST, Again, FinalRefusal, LinkTable, Nobody, Stopping
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.liveness import Sign
from penstock.wire.messages import Answer, Delivery, Failed, Ping, Subscribe


class Question(Call):
    def __init__(self, *, resend: bool = True) -> None:
        super().__init__(resend=resend)
        self.message = Ping()
        self.errors: list[PenstockError] = []
        self.is_abandoned = False
        self.drops = 0

    def succeed(self, answer: Answer, body: memoryview) -> None:
        raise AssertionError

    def fail(self, error: PenstockError) -> None:
        self.errors.append(error)

    def abandoned(self) -> bool:
        return self.is_abandoned

    def dropped(self) -> None:
        self.drops += 1


class Subscription(Stream):
    def __init__(self) -> None:
        super().__init__()
        self.errors: list[PenstockError] = []

    def opening(self) -> Subscribe:
        return Subscribe(1, 10)

    def delivered(self, delivery: Delivery, body: memoryview) -> None:
        raise AssertionError

    def failed(self, error: PenstockError) -> None:
        self.errors.append(error)


def table() -> LinkTable:
    return LinkTable(5.0, Random(1))


def refusal(code: ErrorCode | str) -> Failed:
    return Failed(str(code), "no")


def test_everything_is_sent_again_in_the_order_it_was_asked_in() -> None:
    waiting = table()
    questions = [Question() for _ in range(3)]
    ids = [waiting.enter(question, 0.0, connected=True) for question in questions]
    stream = Subscription()
    waiting.open(stream, 0.0, connected=True)
    del waiting.calls[ids[1]]  # answered
    waiting.connection_lost(1.0, "it broke")
    assert [who for _, who in waiting.connected()] == [questions[0], questions[2], stream]


def test_what_must_not_be_asked_twice_fails_with_the_connection() -> None:
    waiting = table()
    question = Question(resend=False)
    waiting.enter(question, 0.0, connected=True)
    waiting.connection_lost(1.0, "it broke")
    assert isinstance(question.errors[0], Unanswered)
    assert not waiting


def test_what_breaks_every_connection_fails_in_the_end() -> None:
    waiting = table()
    question = Question()
    waiting.enter(question, 0.0, connected=True)
    for _ in range(RESENDS_AT_MOST):
        waiting.connection_lost(1.0, "it broke")
    assert not question.errors
    waiting.connection_lost(1.0, "it broke")
    assert len(question.errors) == 1


def test_each_waits_its_own_timeout_for_a_connection() -> None:
    waiting = table()
    early, late = Question(), Question()
    waiting.enter(early, 0.0, connected=False)
    waiting.enter(late, 2.0, connected=False)
    stream = Subscription()
    waiting.open(stream, 3.0, connected=False)
    assert waiting.soonest_deadline() == 5.0
    waiting.give_up(5.0, "nobody")
    assert (len(early.errors), len(late.errors)) == (1, 0)
    waiting.give_up(8.0, "nobody")
    assert (len(late.errors), len(stream.errors)) == (1, 1)
    assert waiting.soonest_deadline() is None


def test_what_a_limit_refuses_is_asked_again_until_its_timeout() -> None:
    waiting = table()
    question = Question()
    number = waiting.enter(question, 0.0, connected=True)
    now = 0.0
    pauses = 0
    while isinstance(verdict := waiting.refused(number, refusal(ErrorCode.THROTTLED), now), Again):
        assert waiting.asks_again(number, question)
        now += verdict.seconds
        pauses += 1
    assert isinstance(verdict, FinalRefusal)
    assert verdict.error.code is ErrorCode.THROTTLED
    assert pauses > 3
    assert now <= 5.0


def test_a_subscription_waits_for_a_limit_however_long_that_takes() -> None:
    waiting = table()
    stream = Subscription()
    waiting.open(stream, 0.0, connected=True)
    for second in range(100):
        verdict = waiting.refused(stream.request_id, refusal(ErrorCode.THROTTLED), float(second))
        assert isinstance(verdict, Again)
        assert verdict.seconds <= 2.0


def test_a_server_that_stops_keeps_nothing_from_the_next_one() -> None:
    waiting = table()
    again, once, stream = Question(), Question(resend=False), Subscription()
    numbers = [waiting.enter(question, 0.0, connected=True) for question in (again, once)]
    waiting.open(stream, 0.0, connected=True)
    stopping = refusal(ErrorCode.SHUTTING_DOWN)
    assert waiting.refused(numbers[0], stopping, 0.0) == Stopping(ends_connection=True)
    assert isinstance(waiting.refused(numbers[1], stopping, 0.0), FinalRefusal)
    assert waiting.refused(stream.request_id, stopping, 0.0) == Stopping(ends_connection=False)
    assert waiting.refused(999, stopping, 0.0) == Nobody()
    assert [who for _, who in waiting.connected()] == [again, stream]


def test_a_code_that_is_not_known_yet_is_told_with_its_name() -> None:
    waiting = table()
    number = waiting.enter(Question(), 0.0, connected=True)
    verdict = waiting.refused(number, refusal("from-the-future"), 0.0)
    assert isinstance(verdict, FinalRefusal)
    assert verdict.error.code is ErrorCode.INTERNAL
    assert "from-the-future" in verdict.error.message


def test_what_nobody_waits_for_is_dropped_where_it_would_be_asked_again() -> None:
    waiting = table()
    questions = [Question() for _ in range(3)]
    numbers = [waiting.enter(question, 0.0, connected=True) for question in questions]
    for question in questions:
        question.is_abandoned = True
    assert not waiting.asks_again(numbers[0], questions[0])
    waiting.connection_lost(1.0, "it broke")
    assert [question.drops for question in questions] == [1, 1, 1]
    assert not waiting


def test_a_silent_server_is_asked_and_then_given_up() -> None:
    waiting = table()
    assert waiting.look_alive(heard=False) is Sign.LIVES  # nothing is asked of it
    waiting.enter(Question(), 0.0, connected=True)
    assert waiting.look_alive(heard=False) is Sign.PROBE
    assert waiting.look_alive(heard=True) is Sign.LIVES
    assert [waiting.look_alive(heard=False) for _ in range(2)] == [Sign.PROBE, Sign.GIVE_UP]


def test_after_a_connection_that_was_good_for_nothing_there_is_a_pause() -> None:
    waiting = table()
    assert waiting.first_pause() == 0.0
    list(waiting.connected())
    assert waiting.first_pause() > 0.0
    waiting.heard()
    assert waiting.first_pause() == 0.0


def test_a_failed_attempt_is_followed_by_another_while_something_waits() -> None:
    waiting = table()
    question = Question()
    waiting.enter(question, 0.0, connected=False)
    refused = PenstockError(ErrorCode.OVERLOADED, "later")
    assert waiting.attempt_failed(None, "no route", once=False) is not None
    assert waiting.attempt_failed(refused, "later", once=False) is not None
    assert not question.errors


def test_nothing_waits_any_longer_after_a_refusal_that_is_final_or_the_only_attempt() -> None:
    final = PenstockError(ErrorCode.UNAUTHENTICATED, "who are you?")
    for refusal, once, expected in ((final, False, final.code), (None, True, ErrorCode.UNREACHABLE)):
        waiting = table()
        question = Question()
        waiting.enter(question, 0.0, connected=False)
        assert waiting.attempt_failed(refusal, "no route", once=once) is None
        assert [error.code for error in question.errors] == [expected]


def test_what_waited_for_a_call_that_is_too_old_is_sent_once() -> None:
    waiting, after = table(), Question()

    class Outlived(Question):
        def has_outlived(self, clock: float) -> bool:
            return clock > 100

        def cut_off(self, error: PenstockError) -> None:
            super().cut_off(error)
            sent.append(waiting.enter(after, 0.0, connected=True))

    old, young = Outlived(), Question()
    sent: list[int] = []
    waiting.enter(old, 0.0, connected=False)
    second = waiting.enter(young, 0.0, connected=False)
    for request_id, _ in waiting.connected(101.0):
        sent.append(request_id)
    assert len(old.errors) == 1
    assert sorted(sent) == [second, second + 1]
    assert list(waiting.calls.values()) == [young, after]
