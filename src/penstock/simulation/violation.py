"""A violation: the broken invariant, the time, and the reason in one sentence."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """What a checker found."""

    checker: str
    at_ms: int
    sentence: str
