"""Which member of an etcd is asked, and what follows from failures, over a clock that is a number."""

from __future__ import annotations

import pytest

from penstock.metadata.store.etcd_errors import (
    DistrustError,
    EtcdError,
    NotDoneError,
    PerhapsDoneError,
    RefusedError,
    TokenRefusedError,
)
from penstock.metadata.store.etcd_search import (
    CONNECT_SECONDS,
    PAUSE_SECONDS,
    MemberOrder,
    Question,
    WatchSearch,
)
from penstock.metadata.store.etcd_settings import Endpoint
from penstock.metadata.store.interface import StoreRefusedError, StoreUnavailableError

ONE, TWO = Endpoint("one", 2379), Endpoint("two", 2379)


def fail(question: Question, order: MemberOrder, error: EtcdError, now: float = 0.0) -> float:
    member = order.first
    order.demote(member)
    return question.failed(member, error, now)


def test_the_member_that_failed_is_asked_last() -> None:
    order = MemberOrder([ONE, TWO])
    order.demote(TWO)
    assert order.first == ONE
    order.demote(ONE)
    assert order.first == TWO


def test_what_may_be_asked_again_leaves_time_to_ask_the_others() -> None:
    order = MemberOrder([ONE, TWO])
    assert Question(order, 10.0, 0.0, again=True).seconds(0.0) == 5.0
    assert Question(order, 10.0, 0.0, again=True).seconds(8.0) == 2.0
    assert Question(order, 10.0, 0.0, again=False).seconds(1.0) == 9.0
    assert Question(order, 1.5, 0.0, again=True).seconds(0.0) == CONNECT_SECONDS


def test_after_a_round_there_is_a_pause() -> None:
    order = MemberOrder([ONE, TWO])
    question = Question(order, 10.0, 0.0, again=True)
    assert fail(question, order, NotDoneError("gone")) == 0.0
    assert fail(question, order, NotDoneError("gone")) == PAUSE_SECONDS
    assert fail(question, order, NotDoneError("gone"), 10.0 - PAUSE_SECONDS / 2) < PAUSE_SECONDS


def test_the_end_of_the_time_says_what_each_member_said_first() -> None:
    order = MemberOrder([ONE])
    question = Question(order, 10.0, 0.0, again=True)
    fail(question, order, NotDoneError("no leader"))
    short = PerhapsDoneError("no answer within 0.1 s")
    short.__cause__ = TimeoutError()
    fail(question, order, short, 10.0)
    with pytest.raises(StoreUnavailableError, match=r"within 10 s, try again \(one:2379: no leader\)"):
        question.seconds(10.0)


def test_a_write_that_may_be_done_is_not_asked_again() -> None:
    order = MemberOrder([ONE, TWO])
    question = Question(order, 10.0, 0.0, again=False)
    assert fail(question, order, NotDoneError("gone")) == 0.0
    with pytest.raises(PerhapsDoneError, match="two:2379: cut"):
        fail(question, order, PerhapsDoneError("cut"))


def test_members_without_a_trusted_certificate_are_not_asked_again() -> None:
    order = MemberOrder([ONE, TWO])
    question = Question(order, 10.0, 0.0, again=True)
    fail(question, order, DistrustError("unknown authority"))
    with pytest.raises(StoreRefusedError, match="no member of etcd can be trusted"):
        fail(question, order, DistrustError("unknown authority"))


def test_a_new_token_is_tried_at_once_then_after_pauses_and_then_never() -> None:
    question = Question(MemberOrder([ONE, TWO]), 10.0, 0.0, again=True)
    refused = TokenRefusedError("invalid auth token")
    assert [question.token_refused(ONE, refused) for _ in range(3)] == [0.0, PAUSE_SECONDS, PAUSE_SECONDS]
    with pytest.raises(RefusedError, match="refuses its own token"):
        question.token_refused(ONE, refused)


def test_a_watch_gives_up_when_all_have_failed_for_the_whole_time() -> None:
    search = WatchSearch(MemberOrder([ONE, TWO]), 10.0)
    assert search.seconds == 5.0
    assert search.failed(ONE, NotDoneError("gone"), 0.0) == PAUSE_SECONDS
    search.answered()
    assert search.failed(ONE, NotDoneError("gone"), 8.0) == PAUSE_SECONDS
    assert search.failed(TWO, NotDoneError("gone"), 17.9) == PAUSE_SECONDS
    with pytest.raises(StoreUnavailableError, match="one:2379: gone; two:2379: away"):
        search.failed(TWO, NotDoneError("away"), 18.0)


def test_a_watch_is_tried_with_one_new_token() -> None:
    search = WatchSearch(MemberOrder([ONE]), 10.0)
    refused = TokenRefusedError("invalid auth token")
    search.token_refused(ONE, refused)
    search.answered()
    search.token_refused(ONE, refused)
    with pytest.raises(StoreUnavailableError, match="refuses the watch"):
        search.token_refused(ONE, refused)
