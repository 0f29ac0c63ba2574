"""The store's interface: versioned entries under keys, changes that can be watched, leases.

Every store passes the same contract tests. Versions rise with every change of the store, so that a key that was
deleted and made again never shows a version twice. Elections stand on top of it, in `metadata/election.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple, Protocol, runtime_checkable

from penstock.model.errors import VersionConflictError as VersionConflictError

ABSENT = 0
"""The version of a key that does not exist, and of a store that nothing was ever written to."""


class Entry(NamedTuple):
    """A value and the version it has."""

    key: str
    value: bytes
    version: int


class Listing(NamedTuple):
    """Entries by key, all as of one moment, and the version the whole store had then."""

    entries: tuple[Entry, ...]
    version: int


class Change(NamedTuple):
    """What a watch tells: the entry as it became, or that the key is gone (`value` is None)."""

    key: str
    value: bytes | None
    version: int


class LeaseEndedError(Exception):
    """The lease has ended, so nothing can be put under it; nothing was changed."""


class WatchLostError(Exception):
    """Changes that a watch has not seen yet are no longer kept: list anew, and watch from there."""


class StoreUnavailableError(Exception):
    """The store cannot be reached or cannot write; the message says why."""


class StoreRefusedError(StoreUnavailableError):
    """Store and process do not trust each other: trying again is no use before a secret or certificate is another one."""


class MetadataStore(Protocol):
    """Linearizable, durable (unless in memory), safe to use from several processes where the store is shared.

    Everything but `close` may raise `StoreUnavailableError`; a write may have been done nevertheless.
    """

    async def get(self, key: str) -> Entry | None:
        """The entry under a key."""
        ...

    async def list(self, prefix: str) -> Listing:
        """All entries whose key begins with the prefix, by key."""
        ...

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        """Writes and returns the new version.

        With a `version` only if the entry still has it (`ABSENT`: only if there is none), else
        `VersionConflictError`. With a `lease` the entry goes when the lease ends; `LeaseEndedError` if it has.
        """
        ...

    async def delete(self, key: str, version: int | None = None) -> int:
        """Deletes, with a `version` only if the entry still has it; the version of the deletion.

        Without a `version` a key that is not there is no error; the answer is then `ABSENT`.
        """
        ...

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        """Every change under the prefix that is newer than the version `after`, in order, whoever makes it.

        So a listing and a watch after its version leave no gap. Ends when the store is closed. Raises
        `WatchLostError` when it falls so far behind that changes it should tell are no longer kept.
        """
        ...

    async def grant(self, seconds: float) -> int:
        """A new lease, which ends after so many seconds unless it is renewed."""
        ...

    async def renew(self, lease: int) -> bool:
        """The lease begins anew; False if it has ended already."""
        ...

    async def revoke(self, lease: int) -> None:
        """Ends a lease now, and removes what was put under it."""
        ...

    async def close(self) -> None:
        """Ends all watches and lets go of the store."""
        ...


@runtime_checkable
class RememberingStore(Protocol):
    """A store that has copies which can be read while the store itself is away."""

    async def list_known(self, prefix: str) -> Listing:
        """As `list`, but perhaps a moment behind. Watched after its version, no change is missed."""
        ...
