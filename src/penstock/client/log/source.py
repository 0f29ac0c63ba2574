"""The source of a log's slices, and how they are handed out: as a whole, or message by message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from penstock.client.connection.link import Link
from penstock.client.log.logged import LoggedMessage, LoggedMessages


class Source(Protocol):
    """Returns slices in order, and is told what the user does with them."""

    @property
    def link(self) -> Link:
        """The connection it reads over."""

    @property
    def closed(self) -> bool:
        """Whether it has ended, or is about to."""

    def epoch_of(self, number: int) -> int:
        """Rises when the partition of the number is read again from another offset.

        Messages of earlier slices that were not handed out are invalid.
        """

    async def begin(self) -> None:
        """Finds its place; without it the first slice does."""

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice; None at the end."""

    def handed_out(self, following: int, epoch: int) -> None:
        """The user has everything before `following` and asked for more: everything handed out before is done."""

    async def close(self) -> None:
        """Ends it."""


class Steps:
    """Goes through slices message by message. Nothing here waits: the caller provides the slices."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._messages: Iterator[LoggedMessage] | None = None
        self._first = 0
        self._epoch = -1

    def take(self, found: LoggedMessages) -> None:
        """The next slice."""
        self._messages = iter(found)
        self._first = found.first
        self._epoch = self._source.epoch_of(found.first)

    def step(self) -> LoggedMessage | None:
        """The next message; None: bring another slice."""
        if self._messages is not None and self._epoch == self._source.epoch_of(self._first):
            for message in self._messages:
                self._source.handed_out(message.sequence + 1, self._epoch)
                return message
        self._messages = None
        return None
