"""The table of errors is complete, and an error says what its row says."""

from __future__ import annotations

import pytest

from penstock.model.errors import ERRORS, ErrorCode, PenstockError


def test_every_code_has_a_row_and_every_row_a_meaning() -> None:
    assert set(ERRORS) == set(ErrorCode)
    assert all(row.meaning for row in ERRORS.values())


@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_knows_its_row(code: ErrorCode) -> None:
    error = PenstockError(code, "what went wrong")
    assert error.retryable == ERRORS[code].retryable
    assert error.refresh_route == ERRORS[code].refresh_route
    assert str(error) == f"what went wrong [{code.value}]"


def test_what_may_pass_by_itself_is_retryable_and_what_cannot_is_not() -> None:
    assert ERRORS[ErrorCode.QUEUE_FULL].retryable
    assert ERRORS[ErrorCode.DISK_FULL].retryable
    assert not ERRORS[ErrorCode.BAD_REQUEST].retryable
    assert not ERRORS[ErrorCode.STALE_RECEIPT].retryable
