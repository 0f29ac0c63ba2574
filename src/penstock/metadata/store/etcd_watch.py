"""A watch over etcd: continues at another member where it stopped, and delivers every change once.

Delivered changes are identified by their revision, so a new stream begins with the next one. A silent stream is checked by
asking its member for its status: a member that is paused or disconnected sends nothing either.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from penstock.metadata.store.etcd_client import EtcdClient
from penstock.metadata.store.etcd_errors import (
    EtcdError,
    NotDoneError,
    PerhapsDoneError,
    RefusedError,
    TokenRefusedError,
    meaning,
)
from penstock.metadata.store.etcd_http import BadHttpError, HttpConnection
from penstock.metadata.store.etcd_messages import Event, Problem, Streamed, WatchAnswer, decode, range_end
from penstock.metadata.store.etcd_search import WatchSearch
from penstock.metadata.store.etcd_settings import Endpoint
from penstock.metadata.store.interface import Change, StoreUnavailableError, WatchLostError

CHECK_SECONDS = 2.0
"""After so long without news the member is asked how it is."""


class EtcdWatch:
    """One watch; the first `skipped` characters of each key are the store's prefix."""

    def __init__(self, client: EtcdClient, prefix: bytes, skipped: int, after: int) -> None:
        self._client = client
        self._prefix = prefix
        self._skipped = skipped
        self._after = after

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Every change; ends when the client is closed."""
        search = WatchSearch(self._client.order, self._client.timeout_seconds)
        loop = asyncio.get_running_loop()
        while not self._client.closed.is_set():
            member = self._client.order.first
            try:
                async with aclosing(self._stream(member, search.seconds)) as stream:
                    async for batch in stream:
                        search.answered()
                        # All changes of a revision are told before anything can go wrong: whoever begins anew
                        # after the last version that was told misses none.
                        for change in batch:
                            yield change
                    return
            except StoreUnavailableError:
                return  # closed
            except TokenRefusedError as error:
                search.token_refused(member, error)
            except RefusedError as error:
                raise StoreUnavailableError(f"etcd at {member} refuses the watch: {error}") from error
            except EtcdError as error:
                if self._client.closed.is_set():
                    return
                self._client.demote(member)
                pause = search.failed(member, error, loop.time())
                try:
                    await self._client.pause(pause)
                except StoreUnavailableError:
                    return

    async def _stream(self, member: Endpoint, seconds: float) -> AsyncGenerator[list[Change], None]:
        """The changes of each revision or more, as one member tells them; ends when the client is closed."""
        connection = await self._begin(member, seconds)
        held: list[Event] = []
        try:
            while (answer := await self._next(member, connection)) is not None:
                if answer.canceled:
                    raise self._ended(answer)
                held += answer.events
                if answer.fragment:
                    continue
                batch, held = [self._change(event) for event in held], []
                # Also without a change it is known up to which revision everything was delivered, except at the beginning,
                # when the member may be behind or may still have to deliver the past.
                told = batch[-1].version if batch else (0 if answer.created else answer.header.revision)
                self._after = max(self._after, told)
                yield batch
        finally:
            connection.close()

    async def _begin(self, member: Endpoint, seconds: float) -> HttpConnection:
        create = {
            "key": self._prefix,
            "range_end": range_end(self._prefix),
            "start_revision": self._after + 1,
            "progress_notify": True,
            "fragment": True,
        }
        try:
            async with asyncio.timeout(seconds):
                return await self._client.stream(member, "/v3/watch", {"create_request": create})
        except TimeoutError as error:
            raise NotDoneError("the watch was not begun in time") from error

    async def _next(self, member: Endpoint, connection: HttpConnection) -> WatchAnswer | None:
        """None when the client is closed."""
        line = asyncio.ensure_future(connection.next_line())
        closed = asyncio.ensure_future(self._client.closed.wait())
        try:
            while not line.done():
                await asyncio.wait({line, closed}, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if closed.done():
                    return None
                if not line.done():
                    await self._client.check(member)
            return self._read(line.result())
        except (OSError, BadHttpError) as error:
            raise PerhapsDoneError(str(error) or type(error).__name__) from error
        finally:
            for task in (line, closed):
                task.cancel()
            await asyncio.gather(line, closed, return_exceptions=True)

    def _read(self, line: bytes | None) -> WatchAnswer:
        if line is None:
            raise PerhapsDoneError("the watch was ended")
        try:
            said = decode(line, Streamed[WatchAnswer])
        except msgspec.MsgspecError as error:
            raise PerhapsDoneError(f"the server at this address is not etcd ({error})") from error
        if said.result is None:
            raise meaning(200, Problem.of_stream(said.error))
        return said.result

    def _ended(self, answer: WatchAnswer) -> Exception:
        if answer.compact_revision:
            return WatchLostError(f"changes before version {answer.compact_revision} are no longer kept")
        reason = answer.cancel_reason or "the member ended the watch"
        if "permission denied" in reason or "auth" in reason:
            # The error for an expired token is the same as for a user without the right.
            self._client.forget_token()
            return TokenRefusedError(reason)
        return PerhapsDoneError(reason)

    def _change(self, event: Event) -> Change:
        key = event.kv.key[self._skipped :].decode(errors="replace")
        return Change(key, None if event.type == "DELETE" else event.kv.value, event.kv.mod_revision)
