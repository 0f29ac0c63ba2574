"""Made from `penstock.client.log.readers` by `make blocking`: do not edit."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from penstock.client.blocking.bridge import Bridge
from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.readers import LogBatches, LogMessages


class BlockingLogMessages:
    """Yields one `LoggedMessage` after the other; use it with `with`, or in a `for` loop that goes to the end.

    Slices cross over from the event loop; stepping through their messages does not.
    """

    def __init__(self, bridge: Bridge, reader: LogMessages) -> None:
        self._bridge = bridge
        self._reader = reader

    def __next__(self) -> LoggedMessage:
        message = self._reader.step()
        if message is not None:
            return message
        try:
            return self._bridge.call(self._reader.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        self._bridge.call(self._reader.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bridge.end(self._reader.__aexit__, kind, error, trace)

    def close(self) -> None:
        """Ends the reading; a member of a group commits what is done with, and leaves."""
        self._bridge.end(self._reader.aclose)


class BlockingLogBatches:
    """Yields `LoggedMessages`, slices of the log as they were stored: the fast way; use it as `BlockingLogMessages`."""

    def __init__(self, bridge: Bridge, reader: LogBatches) -> None:
        self._bridge = bridge
        self._reader = reader

    def __next__(self) -> LoggedMessages:
        try:
            return self._bridge.call(self._reader.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        self._bridge.call(self._reader.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bridge.end(self._reader.__aexit__, kind, error, trace)

    def close(self) -> None:
        """Ends the reading; a member of a group commits what is done with, and leaves."""
        self._bridge.end(self._reader.aclose)
