"""A store with sealed documents: seals what is written, removes the seal of what is read, and marks documents without one.

A process sees documents that an owner of the key has written. In place of any other it sees `UNSEALED`, which every reader
of documents refuses; the log names it once.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Collection

from penstock.metadata.seals.seals import NoSealError, Sealer, Sealers, WrongSealError
from penstock.metadata.store.interface import Change, Entry, Listing, MetadataStore, RememberingStore
from penstock.model.document import UNSEALED

NAMED_AT_MOST = 100
"""So many documents without a right seal are named in the log; more are not."""

_logger = logging.getLogger(__name__)


class SealedStore:
    """See `MetadataStore`."""

    def __init__(self, store: MetadataStore, sealers: Sealers, accepted: Collection[str] = ()) -> None:
        """`accepted`: prefixes of keys under which documents without a seal are accepted, while versions are mixed."""
        self._store = store
        self._sealers = sealers
        self._accepted = frozenset(accepted)
        self._named: set[str] = set()

    async def get(self, key: str) -> Entry | None:
        entry = await self._store.get(key)
        return Entry(key, self._opened(key, entry.value), entry.version) if entry is not None else None

    async def list(self, prefix: str) -> Listing:
        return self._listing(await self._store.list(prefix))

    def _listing(self, listing: Listing) -> Listing:
        opened = self._opened
        return Listing(
            tuple([Entry(key, opened(key, value), version) for key, value, version in listing.entries]),
            listing.version,
        )

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        found = self._sealer(key)
        return await self._store.put(key, found[1].seal(key, value) if found else value, version, lease)

    async def delete(self, key: str, version: int | None = None) -> int:
        return await self._store.delete(key, version)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        watch = self._store.watch(prefix, after)
        try:
            async for key, value, version in watch:
                yield Change(key, self._opened(key, value) if value is not None else None, version)
        finally:
            await watch.aclose()

    async def grant(self, seconds: float) -> int:
        return await self._store.grant(seconds)

    async def renew(self, lease: int) -> bool:
        return await self._store.renew(lease)

    async def revoke(self, lease: int) -> None:
        await self._store.revoke(lease)

    async def close(self) -> None:
        await self._store.close()

    # -- seals -----------------------------------------------------------------------------------------------

    def _sealer(self, key: str) -> tuple[str, Sealer] | None:
        for prefix, sealer in self._sealers.items():
            if key.startswith(prefix):
                return prefix, sealer
        return None

    def _opened(self, key: str, value: bytes) -> bytes:
        found = self._sealer(key)
        if found is None:
            return value
        prefix, sealer = found
        try:
            opened = sealer.open(key, value)
        except NoSealError:
            if prefix in self._accepted:
                return value
            return self._refused(key, "has no seal: an earlier version or a writer without the key wrote it")
        except WrongSealError:
            return self._refused(
                key, "has an invalid seal: a writer without the key wrote it, or the key has changed"
            )
        self._named.discard(key)
        return opened

    def _refused(self, key: str, why: str) -> bytes:
        if key not in self._named and len(self._named) < NAMED_AT_MOST:
            self._named.add(key)
            _logger.error(
                "ignored the entry %(entry)s in the metadata store, because it %(reason)s",
                {"entry": key, "reason": why},
            )
        return UNSEALED


class SealedRememberingStore(SealedStore):
    """The same over a store with copies (see `RememberingStore`)."""

    def __init__(
        self, store: MetadataStore, copies: RememberingStore, sealers: Sealers, accepted: Collection[str] = ()
    ) -> None:
        super().__init__(store, sealers, accepted)
        self._copies = copies

    async def list_known(self, prefix: str) -> Listing:
        return self._listing(await self._copies.list_known(prefix))


def sealed(store: MetadataStore, sealers: Sealers, accepted: Collection[str] = ()) -> SealedStore:
    """A store over another one, which it closes."""
    if isinstance(store, RememberingStore):
        return SealedRememberingStore(store, store, sealers, accepted)
    return SealedStore(store, sealers, accepted)
