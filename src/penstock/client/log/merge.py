"""Slices of several partitions as one stream: in the order of arrival, or of sending.

Within a partition the order is that of its log. Between partitions there is only time, by the clocks of their nodes, so
merging is approximate: messages that are sent while the log is read may come after newer ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from penstock.client.log.logged import LoggedMessages

PATIENCE_SECONDS = 1.0
"""For how long a partition that does not answer holds back the others' messages, where new ones are waited for."""


class MergePart(Protocol):
    """The reader of one partition."""

    @property
    def epoch(self) -> int:
        """Rises when reading begins again at another offset: earlier slices are invalid."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to read now, as far as is known."""

    @property
    def standing_by(self) -> bool:
        """Whether another member reads this partition."""

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice; None at the end."""


class _Head(NamedTuple):
    """A slice that waits to be handed out."""

    found: LoggedMessages
    epoch: int


class Merge:
    """One stream of several; holds at most one slice of each."""

    def __init__(self, parts: Sequence[MergePart], *, by_time: bool, follow: bool) -> None:
        self._parts = parts
        self._by_time = by_time
        self._follow = follow
        self._fetching: dict[int, asyncio.Task[tuple[LoggedMessages | None, int]]] = {}
        self._heads: dict[int, _Head] = {}
        """In the order of arrival."""
        self._ended: set[int] = set()
        self._closed = False

    async def next(self) -> LoggedMessages | None:
        """The next slice, or the part of it that comes before everything else; None at the end. Raises what a part does."""
        while not self._closed:
            self._fetch()
            await asyncio.sleep(0)  # those that were just begun know now whether they have to wait
            self._collect()
            if self._heads and not self._behind():
                return self._take()
            fetching = self._fetching
            if not fetching or (self._ended and all(self._parts[place].standing_by for place in fetching)):
                return None
            patience = PATIENCE_SECONDS if self._heads and self._follow else None
            done, _ = await asyncio.wait(
                fetching.values(), timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
            if not done and self._heads:
                return self._take()
        return None

    def close(self) -> None:
        """Fetches nothing more; waiting callers get None."""
        self._closed = True
        for task in self._fetching.values():
            task.cancel()
        self._fetching.clear()
        self._heads.clear()

    def _fetch(self) -> None:
        for place, part in enumerate(self._parts):
            head = self._heads.get(place)
            if head is not None and head.epoch != part.epoch:
                del self._heads[place]
                head = None
            if head is None and place not in self._fetching and place not in self._ended:
                self._fetching[place] = asyncio.get_running_loop().create_task(_fetched(part))

    def _collect(self) -> None:
        for place, task in list(self._fetching.items()):
            if not task.done():
                continue
            del self._fetching[place]
            found, epoch = task.result()
            if found is None:
                self._ended.add(place)
            elif epoch == self._parts[place].epoch:
                self._heads[place] = _Head(found, epoch)

    def _behind(self) -> bool:
        """Whether something may come that belongs before everything there is."""
        return self._by_time and not all(self._parts[place].idle for place in self._fetching)

    def _take(self) -> LoggedMessages:
        if not self._by_time:
            place = next(iter(self._heads))
            return self._heads.pop(place).found
        place = min(self._heads, key=lambda one: self._heads[one].found.first_sent_ms)
        head = self._heads.pop(place)
        until_ms = min((other.found.first_sent_ms for other in self._heads.values()), default=None)
        if until_ms is None:
            return head.found
        front, rest = head.found.divided(until_ms)
        if rest is not None:
            self._heads[place] = _Head(rest, head.epoch)
        return front


async def _fetched(part: MergePart) -> tuple[LoggedMessages | None, int]:
    """A slice, and the epoch in which it came."""
    found = await part.next_slice()
    return found, part.epoch
