"""The store's interface: versioned entries under keys, changes that can be watched, leases.

Every store passes the same contract tests. Versions rise with every change of the store, so a key that was deleted and
created again never has the same version twice. Elections are built on top of it, in `metadata/election.py`.
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
    """Entries by key, all as of one moment, and the version of the whole store at that moment."""

    entries: tuple[Entry, ...]
    version: int


class Change(NamedTuple):
    """A change from a watch: the new entry, or that the key is gone (`value` is None)."""

    key: str
    value: bytes | None
    version: int


class LeaseEndedError(Exception):
    """The lease has ended, so nothing can be put under it; nothing was changed."""


class WatchLostError(Exception):
    """Changes that a watch has not seen yet are no longer kept: list again, and watch from there."""


class StoreUnavailableError(Exception):
    """The store cannot be reached or cannot write; the message says why."""


class StoreRefusedError(StoreUnavailableError):
    """Store and process do not trust each other: a retry needs another secret or certificate."""


class MetadataStore(Protocol):
    """Linearizable, durable (unless in memory), safe to use from several processes if the store is shared.

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
        """Every change under the prefix that is newer than the version `after`, in order, by any writer.

        So a listing and a watch after its version leave no gap. Ends when the store is closed. Raises `WatchLostError`
        when it falls so far behind that undelivered changes are no longer kept.
        """
        ...

    async def grant(self, seconds: float) -> int:
        """A new lease, which ends after so many seconds unless it is renewed."""
        ...

    async def renew(self, lease: int) -> bool:
        """Extends the lease from now; False if it has ended already."""
        ...

    async def revoke(self, lease: int) -> None:
        """Ends a lease now, and removes what was put under it."""
        ...

    async def close(self) -> None:
        """Ends all watches and closes the store."""
        ...


@runtime_checkable
class RememberingStore(Protocol):
    """A store with copies that can be read while the store itself is unavailable."""

    async def list_known(self, prefix: str) -> Listing:
        """As `list`, but perhaps a moment behind. Watched after its version, no change is missed."""
        ...
