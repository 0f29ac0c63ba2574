"""Converts a `Failed` into an error for the program that gets it."""

from __future__ import annotations

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Failed


def error_code(code: str) -> ErrorCode:
    """The code of a refusal; one that this program is too old to know is `internal`."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.INTERNAL


def error_of(answer: Failed) -> PenstockError:
    """The server's error."""
    code = error_code(answer.code)
    known = code == answer.code
    return PenstockError(
        code, answer.message if known else f"{answer.message} (unknown error code {answer.code!r})"
    )


def hello_first() -> PenstockError:
    """A client asks for something before it has greeted the server."""
    return PenstockError(ErrorCode.BAD_REQUEST, "send Hello first")
