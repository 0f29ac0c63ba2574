"""A violation: which invariant does not hold, since when, and in one sentence why."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """What a checker found."""

    checker: str
    at_ms: int
    sentence: str
