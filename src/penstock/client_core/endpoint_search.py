"""Which of several endpoints is tried when, and for how long.

All are tried once and quickly before the client waits for any of them. So a dead one (a host that is gone does not even
refuse) costs a second and not the whole timeout. Then they are tried again, with longer and longer timeouts.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.errors import ErrorCode

QUICK_SECONDS = 1.0
"""For each endpoint, the first time."""
GROWTH = 3
"""How much longer each is waited for in every further round."""
LEAST_SECONDS = 0.01
FINAL = {
    *(ErrorCode.UNSUPPORTED_VERSION, ErrorCode.BAD_REQUEST),
    *(ErrorCode.UNKNOWN_REQUEST, ErrorCode.UNAUTHENTICATED),
}
"""Refusals of the greeting that no further attempt would change."""


class FailedAttempt(NamedTuple):
    """Why an attempt failed."""

    code: ErrorCode
    silent: bool = False
    """Whether nothing answered at all, not even that it refuses."""


class Round(NamedTuple):
    """Endpoints to try one after the other, by their positions in the list."""

    places: list[int]
    seconds: float
    """For each."""
    once: bool
    """Whether one attempt is enough."""


class EndpointSearch:
    """The search for one endpoint that answers. It takes about `seconds`. Without `patience` only silent endpoints are tried
    again: a person at a prompt wants to know at once that no server listens there.
    """

    def __init__(self, count: int, seconds: float, now: float, *, patience: bool) -> None:
        self._refusals: list[FailedAttempt | None] = [None] * count
        self._ends = now + seconds
        self._patience = patience
        self._each = QUICK_SECONDS
        self._first = True

    def next_round(self, now: float) -> Round | None:
        """The next endpoints to try; None: the search is over."""
        asked = [place for place, refusal in enumerate(self._refusals) if self._is_worth_asking(refusal)]
        left = self._ends - now
        if not asked or (not self._first and left < LEAST_SECONDS):
            return None
        self._each = max(min(self._each, left / len(asked)), LEAST_SECONDS)
        found = Round(asked, self._each, self._first)
        self._each *= GROWTH
        self._first = False
        return found

    def failed(self, place: int, refusal: FailedAttempt) -> None:
        """An attempt failed."""
        self._refusals[place] = refusal

    def _is_worth_asking(self, refusal: FailedAttempt | None) -> bool:
        if refusal is None:
            return True
        return refusal.code not in FINAL if self._patience else refusal.silent


def tells(refusal: FailedAttempt) -> int:
    """How much a refusal says: an answer more than a host that is not there, and that more than silence."""
    if refusal.silent:
        return 0
    return 1 if refusal.code is ErrorCode.UNREACHABLE else 2
