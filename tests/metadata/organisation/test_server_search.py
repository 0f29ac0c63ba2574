"""Of which servers a request is asked, over a list of names and a clock that is a number."""

from __future__ import annotations

import pytest

from penstock.metadata.organisation.server_search import (
    PAUSE_SECONDS,
    SHORTEST_SHARE_SECONDS,
    End,
    Failure,
    Move,
    Rest,
    ServerSearch,
    Try,
)

ORDER = ("one", "two")


def _next(search: ServerSearch, now: float = 0.0) -> Move:
    return search.next(now, lambda: ORDER)


def _fail_round(search: ServerSearch, failure: Failure) -> None:
    for _ in ORDER:
        move = _next(search)
        assert isinstance(move, Try)
        search.failed(move.address, failure)


def test_what_may_be_asked_again_leaves_time_to_ask_the_others() -> None:
    search = ServerSearch(10.0, 0.0, again=True)
    assert _next(search) == Try("one", 5.0)
    search.failed("one", Failure.PERHAPS_DONE)
    assert _next(search, 7.0) == Try("two", 3.0)


def test_a_share_is_never_too_short_to_answer() -> None:
    search = ServerSearch(1.5, 0.0, again=True)
    assert _next(search) == Try("one", SHORTEST_SHARE_SECONDS)


def test_after_a_round_there_is_a_pause_and_the_order_is_asked_for_again() -> None:
    search = ServerSearch(10.0, 0.0, again=True)
    _fail_round(search, Failure.NOT_DONE)
    assert _next(search) == Rest(PAUSE_SECONDS)
    assert search.next(1.0, lambda: ["three"]) == Try("three", 9.0)


def test_it_ends_when_the_time_is_up() -> None:
    search = ServerSearch(10.0, 0.0, again=True)
    _fail_round(search, Failure.NOT_DONE)
    assert _next(search, 9.5) == Rest(PAUSE_SECONDS)
    assert _next(search, 10.0) is End.OUT_OF_TIME


def test_all_that_refuse_are_not_asked_again_where_nobody_was_asked_before() -> None:
    search = ServerSearch(10.0, 0.0, again=True, first=True)
    _fail_round(search, Failure.STRANGER)
    assert _next(search) is End.REFUSED
    later = ServerSearch(10.0, 0.0, again=True)
    _fail_round(later, Failure.STRANGER)
    assert _next(later) == Rest(PAUSE_SECONDS)


def test_servers_without_their_store_are_not_waited_for() -> None:
    search = ServerSearch(10.0, 0.0, again=True)
    _fail_round(search, Failure.WITHOUT_STORE)
    assert _next(search) is End.NO_STORE


@pytest.mark.parametrize(
    ("failure", "end"), [(Failure.PERHAPS_DONE, End.UNCERTAIN), (Failure.WITHOUT_STORE, End.NO_STORE)]
)
def test_a_change_that_may_be_done_is_asked_of_nobody_else(failure: Failure, end: End) -> None:
    search = ServerSearch(10.0, 0.0, again=False)
    assert _next(search) == Try("one", 10.0)
    search.failed("one", failure)
    assert _next(search) is end


def test_a_change_that_was_not_done_is_asked_of_the_next_one() -> None:
    search = ServerSearch(10.0, 0.0, again=False)
    _next(search)
    search.failed("one", Failure.NOT_DONE)
    assert _next(search, 4.0) == Try("two", 6.0)
