"""Whether reads go to the node or through the front end, over a clock that is a number."""

from __future__ import annotations

from penstock.client_core.node_search import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    NOT_OFFERED_SECONDS,
    NodeSearch,
    ReadRoute,
)
from penstock.model.errors import ErrorCode


def _failed(search: NodeSearch, now: float) -> None:
    assert search.looks(now)
    search.not_found(now, None)
    search.ended()


def test_the_first_reads_wait_for_the_node_and_later_ones_do_not() -> None:
    search = NodeSearch()
    assert search.looks(0.0)
    assert search.way() is ReadRoute.HELD
    assert not search.looks(0.1)
    search.not_found(0.1, None)
    search.ended()
    assert search.way() is ReadRoute.FRONT_END
    assert search.looks(0.1 + FIRST_PAUSE_SECONDS)
    assert search.way() is ReadRoute.FRONT_END
    search.found()
    search.ended()
    assert search.way() is ReadRoute.NODE


def test_a_node_that_cannot_be_read_is_looked_for_more_and_more_slowly() -> None:
    search, now, pause = NodeSearch(), 0.0, FIRST_PAUSE_SECONDS
    while pause < LONGEST_PAUSE_SECONDS:
        _failed(search, now)
        assert not search.looks(now + 0.99 * pause)
        now, pause = now + pause, 2 * pause
    _failed(search, now)
    assert search.looks(now + LONGEST_PAUSE_SECONDS)


def test_where_no_node_is_offered_it_is_asked_again_after_long() -> None:
    search = NodeSearch()
    assert search.looks(0.0)
    search.not_found(0.0, ErrorCode.UNKNOWN_REQUEST)
    search.ended()
    assert not search.looks(0.99 * NOT_OFFERED_SECONDS)
    assert search.looks(NOT_OFFERED_SECONDS)


def test_a_node_that_was_good_for_something_is_looked_for_again_soon() -> None:
    search = NodeSearch()
    for now in (0.0, 1.0, 2.0):
        _failed(search, now)
    assert search.looks(10.0)
    search.found()
    search.ended()
    search.handed_back(20.0, reads=2, was_good=True, is_gone=True)
    assert search.way() is ReadRoute.FRONT_END
    assert search.looks(20.0 + FIRST_PAUSE_SECONDS)


def test_after_a_ticket_has_ended_unused_the_next_read_waits_for_another() -> None:
    search = NodeSearch()
    assert search.looks(0.0)
    search.found()
    search.ended()
    search.handed_back(100.0, reads=0, was_good=True, is_gone=True)
    assert search.looks(100.0)
    assert search.way() is ReadRoute.HELD


def test_a_read_that_is_refused_leaves_the_node_where_it_is() -> None:
    search = NodeSearch()
    assert search.looks(0.0)
    search.found()
    search.ended()
    search.handed_back(1.0, reads=1, was_good=True, is_gone=False)
    assert search.way() is ReadRoute.NODE


def test_nothing_is_looked_for_once_it_is_closed() -> None:
    search = NodeSearch()
    search.close()
    assert not search.looks(0.0)
    assert search.way() is ReadRoute.FRONT_END
