"""Readers: `async for` over a log, by message or by slice."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.source import Source, Steps


class _Reader:
    """The common part of both readers: beginning and ending.

    Leaving the loop ends the reading when the reader object is freed; `async with` ends it before the next line runs, and
    is recommended for a reader of a group.
    """

    def __init__(self, source: Source, *, owned: bool = True) -> None:
        self._source = source
        self._owned = owned
        """Whether the source ends with it; a member of a group may be iterated over several times."""

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        await self._source.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the reading; a member of a group commits what is done with, and leaves."""
        if self._owned:
            await self._source.close()

    def __del__(self) -> None:
        source = self._source
        if self._owned and not source.closed:
            source.link.background.run_from_collector(source.close)


class LogBatches(_Reader):
    """Yields `LoggedMessages`, slices of the log as they were stored: the fast way."""

    async def __anext__(self) -> LoggedMessages:
        source = self._source
        found = await source.next_slice()
        if found is None:
            await self.aclose()
            raise StopAsyncIteration
        source.handed_out(found.next, source.epoch_of(found.first))
        return found


class LogMessages(_Reader):
    """Yields one `LoggedMessage` after the other."""

    def __init__(self, source: Source, *, owned: bool = True) -> None:
        super().__init__(source, owned=owned)
        self._steps = Steps(source)

    async def __anext__(self) -> LoggedMessage:
        while (message := self.step()) is None:
            found = await self._source.next_slice()
            if found is None:
                await self.aclose()
                raise StopAsyncIteration
            self._steps.take(found)
        return message

    def step(self) -> LoggedMessage | None:
        """The next message if it is here already; None: `async for` has to wait for it."""
        return self._steps.step()
