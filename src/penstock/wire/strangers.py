"""Those who have connected and have not shown yet who they are: few at once, and none can keep the others out.

Else clients that open connections and say nothing would take all places. So where there are too many, the one that has waited
longest has to go: who means to show something does so at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

STRANGERS_AT_ONCE = 256

Stranger = TypeVar("Stranger")


class Strangers(Generic[Stranger]):
    """At one server, in the order in which they came."""

    def __init__(self, at_once: int = STRANGERS_AT_ONCE) -> None:
        self._at_once = at_once
        self._waiting: dict[Stranger, None] = {}

    def enter(self, stranger: Stranger) -> Stranger | None:
        """Somebody has come; returns who has to go for it."""
        self._waiting[stranger] = None
        if len(self._waiting) <= self._at_once:
            return None
        oldest = self.oldest
        if oldest is not None:
            del self._waiting[oldest]
        return oldest

    @property
    def oldest(self) -> Stranger | None:
        """Who has waited longest."""
        return next(iter(self._waiting), None)

    def leave(self, stranger: Stranger) -> None:
        """It is gone, or no stranger any more."""
        self._waiting.pop(stranger, None)

    def __iter__(self) -> Iterator[Stranger]:
        return iter(list(self._waiting))

    def __len__(self) -> int:
        return len(self._waiting)
