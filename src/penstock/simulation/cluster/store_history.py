"""All values that the simulated store ever had, key by key, for checkers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from penstock.simulation.cluster.metadata import SimulatedMetadata, StoredChange


class StoreHistory:
    """The contents of the store's log, up to now."""

    def __init__(self, metadata: SimulatedMetadata) -> None:
        self._metadata = metadata
        self._read = 0
        self._changes: dict[str, list[StoredChange]] = {}

    def of_key(self, key: str) -> list[StoredChange]:
        """All changes of a key, in order."""
        log = self._metadata.log
        while self._read < len(log):
            change = log[self._read]
            self._read += 1
            self._changes.setdefault(change.key, []).append(change)
        return self._changes.get(key, [])

    def keys(self, prefix: str) -> list[str]:
        """All keys that ever were, under a prefix."""
        self.of_key("")
        return sorted(key for key in self._changes if key.startswith(prefix))

    def at(self, key: str, version: int) -> bytes | None:
        """The entry of a key at a version of the store; None: none."""
        changes = self.of_key(key)
        place = bisect_right(changes, version, key=lambda change: change.version)
        return changes[place - 1].value if place else None

    def during(self, key: str, first: int, last: int) -> Iterator[bytes | None]:
        """All entries of a key at any version from the first to the last."""
        yield self.at(key, first)
        for change in self.of_key(key):
            if first < change.version <= last:
                yield change.value
