"""The store in memory: for tests, and for servers that need not remember. Handles share one `MemoryContents`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable

from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    Entry,
    LeaseEndedError,
    Listing,
    StoreUnavailableError,
    VersionConflictError,
    WatchLostError,
)
from penstock.metadata.store.watchers import KEPT_CHANGES, READ_AT_ONCE, News, Watchers

POLL_SECONDS = 0.1


class MemoryContents:
    """The contents that the handles of one store share; synchronous, on one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, kept: int = KEPT_CHANGES) -> None:
        self.watchers: set[Watchers] = set()
        self.version = ABSENT
        self.leases: dict[int, tuple[float, float]] = {}
        """Lease → (seconds, when it ends)."""
        self._clock = clock
        self._entries: dict[str, tuple[Entry, int | None]] = {}
        self._changes: deque[Change] = deque(maxlen=kept)
        self._last_lease = 0

    def get(self, key: str) -> Entry | None:
        self.expire()
        found = self._entries.get(key)
        return found[0] if found is not None else None

    def list(self, prefix: str) -> Listing:
        self.expire()
        entries = sorted(entry for key, (entry, _) in self._entries.items() if key.startswith(prefix))
        return Listing(tuple(entries), self.version)

    def put(self, key: str, value: bytes, version: int | None, lease: int | None) -> int:
        self.expire()
        self._check(key, version)
        if lease is not None and lease not in self.leases:
            raise LeaseEndedError(f"lease {lease} has ended")
        self._record(key, value)
        self._entries[key] = (Entry(key, value, self.version), lease)
        return self.version

    def delete(self, key: str, version: int | None) -> int:
        self.expire()
        self._check(key, version)
        return self._remove(key) if key in self._entries else ABSENT

    def news(self, prefix: str, after: int) -> News:
        self.expire()
        oldest = self._changes[0].version if self._changes else self.version + 1
        if after + 1 < oldest:
            raise WatchLostError(f"changes before version {oldest} are no longer kept")
        newer = [one for one in self._changes if one.version > after]
        taken = newer[:READ_AT_ONCE]
        upto = taken[-1].version if taken else after
        return News([one for one in taken if one.key.startswith(prefix)], upto, len(newer) > len(taken))

    def grant(self, seconds: float) -> int:
        self._last_lease += 1
        self.leases[self._last_lease] = (seconds, self._clock() + seconds)
        return self._last_lease

    def renew(self, lease: int) -> bool:
        self.expire()
        if lease not in self.leases:
            return False
        seconds, _ = self.leases[lease]
        self.leases[lease] = (seconds, self._clock() + seconds)
        return True

    def revoke(self, lease: int) -> None:
        if self.leases.pop(lease, None) is not None:
            for key in sorted(key for key, (_, of) in self._entries.items() if of == lease):
                self._remove(key)

    def expire(self) -> None:
        """Ends the leases whose time has come; every operation does so first."""
        if self.leases:
            now = self._clock()
            for lease in [lease for lease, (_, ends) in self.leases.items() if ends <= now]:
                self.revoke(lease)

    def _check(self, key: str, version: int | None) -> None:
        found = self._entries.get(key)
        if version is not None and version != (found[0].version if found is not None else ABSENT):
            raise VersionConflictError(f"{key} has changed")

    def _remove(self, key: str) -> int:
        del self._entries[key]
        self._record(key, None)
        return self.version

    def _record(self, key: str, value: bytes | None) -> None:
        self.version += 1
        self._changes.append(Change(key, value, self.version))
        for watchers in self.watchers:
            watchers.wake()


class MemoryStore:
    """One handle."""

    def __init__(self, contents: MemoryContents | None = None) -> None:
        self._contents: MemoryContents | None = contents if contents is not None else MemoryContents()
        self._watchers = Watchers()
        self._contents.watchers.add(self._watchers)

    @property
    def _open(self) -> MemoryContents:
        if self._contents is None:
            raise StoreUnavailableError("the metadata store is closed")
        return self._contents

    async def get(self, key: str) -> Entry | None:
        return self._open.get(key)

    async def list(self, prefix: str) -> Listing:
        return self._open.list(prefix)

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        return self._open.put(key, value, version, lease)

    async def delete(self, key: str, version: int | None = None) -> int:
        return self._open.delete(key, version)

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        return self._watchers.follow(self._news, prefix, after, self._poll_seconds)

    async def grant(self, seconds: float) -> int:
        return self._open.grant(seconds)

    async def renew(self, lease: int) -> bool:
        return self._open.renew(lease)

    async def revoke(self, lease: int) -> None:
        self._open.revoke(lease)

    async def close(self) -> None:
        if self._contents is not None:
            self._contents.watchers.discard(self._watchers)
            self._contents = None
            self._watchers.close()

    async def _news(self, prefix: str, after: int) -> News:
        return self._open.news(prefix, after)

    def _poll_seconds(self) -> float | None:
        """There is no notification when a lease ends, so a watch polls while there are leases."""
        return POLL_SECONDS if self._contents is not None and self._contents.leases else None
