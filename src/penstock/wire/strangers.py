"""Connections that are not authenticated yet: a limited number, and they cannot keep others out.

Otherwise clients that open connections and send nothing would take all places. So if there are too many, the one that has
waited longest is closed: a real client authenticates at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

STRANGERS_AT_ONCE = 256

Stranger = TypeVar("Stranger")


class Strangers(Generic[Stranger]):
    """Those of one server, in the order of arrival."""

    def __init__(self, at_once: int = STRANGERS_AT_ONCE) -> None:
        self._at_once = at_once
        self._waiting: dict[Stranger, None] = {}

    def enter(self, stranger: Stranger) -> Stranger | None:
        """A connection has come; returns the one that must be closed for it."""
        self._waiting[stranger] = None
        if len(self._waiting) <= self._at_once:
            return None
        oldest = self.oldest
        if oldest is not None:
            del self._waiting[oldest]
        return oldest

    @property
    def oldest(self) -> Stranger | None:
        """The one that has waited longest."""
        return next(iter(self._waiting), None)

    def leave(self, stranger: Stranger) -> None:
        """It is gone, or no stranger any more."""
        self._waiting.pop(stranger, None)

    def __iter__(self) -> Iterator[Stranger]:
        return iter(list(self._waiting))

    def __len__(self) -> int:
        return len(self._waiting)
