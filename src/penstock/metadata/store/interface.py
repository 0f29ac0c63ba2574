"""The store's interface: versioned entries under keys, changes that can be watched, leases, elections.

Every store passes the same contract tests. Versions rise with every change of the store, so that a key that was
deleted and made again never shows a version twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol

ABSENT = 0
"""The version of a key that does not exist."""


class Entry(NamedTuple):
    """A value and the version it has."""

    key: str
    value: bytes
    version: int


class Change(NamedTuple):
    """What a watch tells: the entry as it is now, or that the key is gone (`value` is None)."""

    key: str
    value: bytes | None
    version: int


class VersionConflictError(Exception):
    """The entry is no longer the one the caller saw; nothing was changed."""


class StoreUnavailableError(Exception):
    """The store cannot be reached or cannot write; the message says why."""


class MetadataStore(Protocol):
    """Linearizable, durable (unless in memory), safe to use from several processes where the store is shared."""

    async def get(self, key: str) -> Entry | None:
        """The entry under a key."""
        ...

    async def list(self, prefix: str) -> list[Entry]:
        """All entries whose key begins with the prefix, by key."""
        ...

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        """Writes and returns the new version.

        With a `version` only if the entry still has it (`ABSENT`: only if there is none), else
        `VersionConflictError`. With a `lease` the entry goes when the lease ends.
        """
        ...

    async def delete(self, key: str, version: int | None = None) -> None:
        """Deletes, with a `version` only if the entry still has it. A key that is not there is no error without."""
        ...

    def watch(self, prefix: str) -> AsyncIterator[Change]:
        """Every change under the prefix from now on, in order, whoever makes it, until the iterator is closed."""
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
