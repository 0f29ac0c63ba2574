"""The bridge to the event loop: a thread that runs one, and calls into it that wait for their result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, ParamSpec, TypeVar

from penstock.client.connection.failure import closed

P = ParamSpec("P")
T = TypeVar("T")

MESSAGES_PER_CROSSING = 10_000
"""Of those that a producer takes at once."""


class Bridge:
    """An event loop on a background thread. Any thread may call, several at once."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="penstock client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function on the loop's thread and waits for what it awaits."""

        async def carry_out() -> T:
            return await function(*args, **kwargs)

        return self.run(carry_out())

    def call_plain(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a plain function on the loop's thread."""

        async def carry_out() -> T:
            return function(*args, **kwargs)

        return self.run(carry_out())

    def each(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Goes through what the loop's thread iterates over."""
        while True:
            try:
                item = self.call(source.__anext__)
            except StopAsyncIteration:
                return
            yield item

    def end(self, function: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Calls what ends something; the end of the loop has ended it already."""
        if not self.stopped:
            self.call(function, *args, **kwargs)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine and waits for its result; interrupted, it cancels the work."""
        if self._loop.is_closed():
            work.close()
            raise closed()
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the blocking client would wait for itself: use the async client in callbacks")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def stopped(self) -> bool:
        """Whether the loop has ended."""
        return self._loop.is_closed()

    def stop(self) -> None:
        """Ends the loop and its thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
