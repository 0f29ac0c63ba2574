"""The whole of a store in memory: read without waiting, written through, refreshed by the store's own changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.metadata.store.interface import ABSENT, Change, Entry

Listener = Callable[[Change], None]


class MetadataCache:
    """Entries as of the last change that was heard of. Versions only rise, so late news never undoes newer ones."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._gone: dict[str, int] = {}
        """Versions at which keys were deleted, so that an older put that is heard of later does not revive them."""
        self._listeners: list[tuple[str, Listener]] = []

    def get(self, key: str) -> Entry | None:
        """The entry under a key, as far as is known."""
        return self._entries.get(key)

    def version(self, key: str) -> int:
        """The version of a key, `ABSENT` where there is none."""
        entry = self._entries.get(key)
        return entry.version if entry is not None else ABSENT

    def list(self, prefix: str) -> Iterator[Entry]:
        """All entries whose key begins with the prefix, in no particular order."""
        return (entry for key, entry in self._entries.items() if key.startswith(prefix))

    def listen(self, prefix: str, listener: Listener) -> None:
        """Calls back on every change under the prefix."""
        self._listeners.append((prefix, listener))

    def apply(self, change: Change) -> None:
        """Takes a change in, from a watch or from an own write; older ones than what is known are ignored."""
        known = max(self.version(change.key), self._gone.get(change.key, ABSENT))
        if change.version <= known:
            return
        if change.value is None:
            self._entries.pop(change.key, None)
            self._gone[change.key] = change.version
        else:
            self._entries[change.key] = Entry(change.key, change.value, change.version)
            self._gone.pop(change.key, None)
        for prefix, listener in self._listeners:
            if change.key.startswith(prefix):
                listener(change)
