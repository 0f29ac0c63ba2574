"""Keeps a `MetadataCache` equal to a store: loads it completely, follows every change, writes through.

`mirroring.py` decides what is done when. While the store cannot be reached the cache continues to answer with its
contents; one line in the log reports this, and one the end. A cache that is empty then is loaded with the copies of
metadata servers, if there are any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.cluster.membership.store_requests import Delete, Done, Look, Outcome, Put
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.mirror.mirroring import (
    Check,
    Follow,
    ListKey,
    Load,
    LoadKnown,
    Mirroring,
    OwnRequest,
    Pause,
)
from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    Listing,
    MetadataStore,
    RememberingStore,
    StoreUnavailableError,
    WatchLostError,
)
from penstock.metadata.store_asking import STORE_ERRORS, StoreError, ask, failure

_logger = logging.getLogger(__name__)


class MetadataMirror:
    """One store and the cache in front of it. The caller owns the store and closes it after the mirror."""

    def __init__(
        self,
        store: MetadataStore,
        cache: MetadataCache | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.cache = cache if cache is not None else MetadataCache()
        self.ready = asyncio.Event()
        """Set once the whole store is in the cache, as it is now or as metadata servers know it."""
        self.follows = False
        """Whether changes of the store are received."""
        self.follows_changed: list[Callable[[bool], None]] = []
        """Called whenever `follows` changes."""
        self._store = store
        self._pause = pause
        self._mirroring = Mirroring(
            self.cache, remembers=isinstance(store, RememberingStore), apply=self._apply
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to load and follow."""
        self._task = asyncio.create_task(self._run(), name="metadata mirror")

    async def close(self) -> None:
        """Stops following; the cache stays as it is."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # -- writing through -------------------------------------------------------------------------------------

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        """Writes to the store and, once it is there, to the cache."""
        outcome = await self._carry_out(Put(key, value, version, lease))
        return outcome.version if isinstance(outcome, Done) else ABSENT

    async def delete(self, key: str, version: int | None = None) -> int:
        """Deletes from the store and, once it is gone there, from the cache."""
        outcome = await self._carry_out(Delete(key, version))
        return outcome.version if isinstance(outcome, Done) else ABSENT

    async def refresh(self, key: str) -> None:
        """Reads the store, if the cache may be behind; afterwards the cache has the present entry."""
        await self._carry_out(Look(key))

    async def _carry_out(self, request: Put | Delete | Look) -> Outcome:
        """Returns the outcome once the cache has it; raises the store's errors."""
        own = OwnRequest(self._mirroring, request)
        raised: StoreError | None = None
        while own.request is not None:
            try:
                if isinstance(own.request, ListKey):
                    own.answered(await self._store.list(own.request.key))
                else:
                    own.answered(await ask(self._store, own.request))
            except STORE_ERRORS as error:
                raised = error
                own.answered(failure(error))
        if raised is not None:
            raise raised
        return own.outcome

    # -- following -------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        mirroring = self._mirroring
        while True:
            failed = mirroring.fails
            try:
                match mirroring.step:
                    case Load():
                        mirroring.loaded(await self._store.list(""))
                    case LoadKnown():
                        mirroring.loaded(await self._known())
                        _logger.warning(
                            "the metadata store is not available: using the copies of the metadata servers"
                        )
                    case Check():
                        await self._store.get("")
                        mirroring.checked()
                    case Follow(after):
                        await self._follow(after)
                        return
                    case Pause(seconds):
                        await self._pause(seconds)
                        mirroring.paused()
            except WatchLostError as error:
                _logger.info("reloading the metadata: %(reason)s", {"reason": error})
                mirroring.lost()
            except StoreUnavailableError as error:
                if not failed:
                    _logger.warning(
                        "the metadata store does not answer; the cached metadata stays in use: %(error)s",
                        {"error": error},
                    )
                mirroring.unavailable()
            except Exception:
                # Without this the cache would stay as it is for ever, with keys in it that were taken away.
                _logger.exception(
                    "could not follow the metadata; reloading it. This is a defect of Penstock; please "
                    "report it"
                )
                mirroring.broken()
            if failed and not mirroring.fails:
                _logger.warning("the metadata store is available again")
            if mirroring.is_ready:
                self.ready.set()
            self._say_whether_it_follows()

    async def _known(self) -> Listing:
        if not isinstance(self._store, RememberingStore):
            raise StoreUnavailableError("no metadata server has the metadata")
        return await self._store.list_known("")

    async def _follow(self, after: int) -> None:
        watch = self._store.watch("", after)
        try:
            async for change in watch:
                self._mirroring.heard(change)
        finally:
            await watch.aclose()

    def _say_whether_it_follows(self) -> None:
        if self.follows is not self._mirroring.is_following:
            self.follows = self._mirroring.is_following
            for told in self.follows_changed:
                told(self.follows)

    def _apply(self, change: Change) -> None:
        try:
            self.cache.apply(change)
        except Exception:
            _logger.exception(
                "could not process the change of entry %(entry)s everywhere: this is a defect of "
                "Penstock; please report it",
                {"entry": change.key},
            )
