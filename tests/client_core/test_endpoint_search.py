"""Which of several endpoints is tried when, and which refusal says most."""

from __future__ import annotations

import pytest

from penstock.client_core.endpoint_search import (
    GROWTH,
    LEAST_SECONDS,
    QUICK_SECONDS,
    EndpointSearch,
    FailedAttempt,
    Round,
    tells,
)
from penstock.model.errors import ErrorCode

GONE = FailedAttempt(ErrorCode.UNREACHABLE)
SILENT = FailedAttempt(ErrorCode.UNREACHABLE, silent=True)
STRANGER = FailedAttempt(ErrorCode.UNAUTHENTICATED)


def test_all_are_tried_once_and_quickly_and_then_more_and_more_patiently() -> None:
    search = EndpointSearch(2, 100.0, 0.0, patience=True)
    assert search.next_round(0.0) == Round([0, 1], QUICK_SECONDS, once=True)
    search.failed(0, GONE)
    search.failed(1, SILENT)
    assert search.next_round(2.0) == Round([0, 1], QUICK_SECONDS * GROWTH, once=False)
    assert search.next_round(8.0) == Round([0, 1], QUICK_SECONDS * GROWTH**2, once=False)


def test_the_last_round_ends_with_the_time() -> None:
    search = EndpointSearch(2, 3.0, 10.0, patience=True)
    search.next_round(10.0)
    assert search.next_round(12.0) == Round([0, 1], 0.5, once=False)
    assert search.next_round(13.0 - LEAST_SECONDS / 2) is None


def test_the_first_round_takes_place_without_time_too() -> None:
    assert EndpointSearch(1, 0.0, 0.0, patience=True).next_round(0.0) == Round([0], LEAST_SECONDS, once=True)


@pytest.mark.parametrize(("patience", "again"), [(True, [0, 1]), (False, [1])])
def test_who_is_asked_again(patience: bool, again: list[int]) -> None:
    search = EndpointSearch(3, 100.0, 0.0, patience=patience)
    search.next_round(0.0)
    for place, refusal in enumerate((GONE, SILENT, STRANGER)):
        search.failed(place, refusal)
    found = search.next_round(1.0)
    assert found is not None
    assert found.places == again


def test_the_search_is_over_when_all_have_refused_for_good() -> None:
    search = EndpointSearch(1, 100.0, 0.0, patience=True)
    search.next_round(0.0)
    search.failed(0, STRANGER)
    assert search.next_round(1.0) is None


def test_an_answer_tells_more_than_an_absence_and_that_more_than_silence() -> None:
    assert sorted((STRANGER, SILENT, GONE), key=tells) == [SILENT, GONE, STRANGER]
