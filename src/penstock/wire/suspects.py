"""Servers that failed a moment ago: others are asked before them."""

from __future__ import annotations

from collections.abc import Iterable

SUSPECTED_SECONDS = 2.0
"""So long others are asked first after a server has failed."""


class Suspects:
    """Remembers each for so many seconds. Time is an argument."""

    __slots__ = ("_seconds", "_until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}

    def note(self, address: str, now: float) -> None:
        """It failed."""
        self._until[address] = now + self._seconds

    def last(self, addresses: Iterable[str], now: float) -> list[str]:
        """The same order, but those that failed are at the end."""
        if not self._until:
            return list(addresses)
        self._until = {one: until for one, until in self._until.items() if until > now}
        return sorted(addresses, key=lambda one: one in self._until)
