"""The store in a SQLite file: a separate thread uses the file, so that the event loop never waits for the disk.

Changes of other processes are noticed by reading SQLite's data version ten times a second while there are watches; own
changes are delivered at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from penstock.metadata.store.interface import Change, Entry, Listing, StoreUnavailableError
from penstock.metadata.store.sqlite_file import SqliteFile
from penstock.metadata.store.watchers import KEPT_CHANGES, News, Watchers

POLL_SECONDS = 0.1

Result = TypeVar("Result")
Job = tuple[Callable[[SqliteFile], Any], "asyncio.Future[Any]"]


class SqliteStore:
    """One handle, on the event loop that opened it; made by `open_sqlite_store`."""

    def __init__(self, file: Path, clock: Callable[[], float], kept: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._watchers = Watchers()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self._closed = False
        self._thread = threading.Thread(
            target=self._work, args=(file, clock, kept), name="metadata", daemon=True
        )

    async def open(self) -> None:
        """Raises `StoreUnavailableError` if the file cannot be used."""
        self._thread.start()
        await self._opened

    async def get(self, key: str) -> Entry | None:
        return await self._do(lambda file: file.get(key))

    async def list(self, prefix: str) -> Listing:
        return await self._do(lambda file: file.list(prefix))

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        return await self._change(lambda file: file.put(key, value, version, lease))

    async def delete(self, key: str, version: int | None = None) -> int:
        return await self._change(lambda file: file.delete(key, version))

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        return self._watchers.follow(self._news, prefix, after)

    async def grant(self, seconds: float) -> int:
        return await self._do(lambda file: file.grant(seconds))

    async def renew(self, lease: int) -> bool:
        return await self._do(lambda file: file.renew(lease))

    async def revoke(self, lease: int) -> None:
        await self._change(lambda file: file.revoke(lease))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._watchers.close()
            self._jobs.put(None)
        await asyncio.shield(self._finished)

    async def _news(self, prefix: str, after: int) -> News:
        return await self._do(lambda file: file.news(prefix, after))

    async def _do(self, work: Callable[[SqliteFile], Result]) -> Result:
        if self._closed:
            raise StoreUnavailableError("the metadata store is closed")
        future: asyncio.Future[Result] = self._loop.create_future()
        self._jobs.put((work, future))
        return await future

    async def _change(self, work: Callable[[SqliteFile], Result]) -> Result:
        try:
            return await self._do(work)
        finally:
            self._watchers.wake()

    # -- on the thread ---------------------------------------------------------------------------------------

    def _work(self, path: Path, clock: Callable[[], float], kept: int) -> None:
        try:
            file = SqliteFile(path, clock, kept)
        except Exception as error:
            self._tell(_fail, self._opened, error)
            self._tell(_succeed, self._finished, None)
            return
        self._tell(_succeed, self._opened, None)
        try:
            self._serve(file)
        finally:
            try:
                file.close()
            except StoreUnavailableError:
                pass  # everything that was answered is on disk already
            self._tell(_succeed, self._finished, None)

    def _serve(self, file: SqliteFile) -> None:
        seen: int | None = None
        next_look = 0.0
        while True:
            try:
                # The timeout is always short: a watch may begin at any time, and looking costs microseconds.
                job = self._jobs.get(timeout=POLL_SECONDS)
            except Empty:
                job = ()  # type: ignore[assignment]  # nothing to do but to look round
            if job is None:
                return
            if job:
                work, future = job
                try:
                    self._tell(_succeed, future, work(file))
                except Exception as error:
                    self._tell(_fail, future, error)
            if self._watchers and time.monotonic() >= next_look:
                next_look = time.monotonic() + POLL_SECONDS
                seen = self._look(file, seen)

    def _look(self, file: SqliteFile, seen: int | None) -> int | None:
        """Wakes the watches if another process has changed something, a lease has ended, or the file fails."""
        try:
            ended = file.expire()
            now = file.data_version()
        except StoreUnavailableError:
            self._tell(self._watchers.wake)  # their reading says what is wrong
            return None
        if ended or now != seen:
            self._tell(self._watchers.wake)
        return now

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            pass  # the event loop is gone, with all that waited


def _succeed(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


async def open_sqlite_store(
    file: Path, clock: Callable[[], float] = time.time, kept: int = KEPT_CHANGES
) -> SqliteStore:
    """Opens a file, makes it where there is none; raises `StoreUnavailableError` if it cannot be used."""
    store = SqliteStore(file, clock, kept)
    await store.open()
    return store
