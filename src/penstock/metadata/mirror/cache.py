"""A whole store in memory: read without waiting, written through, updated by the store's own changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.metadata.store.interface import ABSENT, Change, Entry, Listing

Listener = Callable[[Change], None]


class MetadataCache:
    """Entries as of the last received change. Versions only rise, so late changes never undo newer ones."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._kinds: dict[str, dict[str, Entry]] = {}
        """The same by the part before the first slash, so that listing users does not visit every queue."""
        self._gone: dict[str, int] = {}
        """Versions at which keys were deleted, so that an older put that is received later does not restore them."""
        self._listeners: list[tuple[str, Listener]] = []
        self.settled = ABSENT
        """Every change up to this version is here. Of later ones some may be: own writes, and what was looked up."""
        self.settled_listeners: list[Callable[[int], None]] = []
        """Called with `settled` when it has risen."""

    def get(self, key: str) -> Entry | None:
        """The entry under a key, as far as is known."""
        return self._entries.get(key)

    def version(self, key: str) -> int:
        """The version of a key, `ABSENT` where there is none."""
        entry = self._entries.get(key)
        return entry.version if entry is not None else ABSENT

    def list(self, prefix: str) -> Sequence[Entry]:
        """All entries whose key begins with the prefix, in no particular order; later changes do not affect it."""
        kind, slash, _ = prefix.partition("/")
        entries = self._kinds.get(kind, {}) if slash else self._entries
        return [entry for key, entry in entries.items() if key.startswith(prefix)]

    def listen(self, prefix: str, listener: Listener) -> None:
        """Calls back on every change under the prefix."""
        self._listeners.append((prefix, listener))

    def apply(self, change: Change) -> None:
        """Takes a change in, from a watch or from an own write; older ones than what is known are ignored."""
        key = change.key
        if change.version <= max(self.version(key), self._gone.get(key, ABSENT)):
            return
        entries = self._kinds.setdefault(key.partition("/")[0], {})
        if change.value is None:
            self._entries.pop(key, None)
            entries.pop(key, None)
            self._gone[key] = change.version
        else:
            self._entries[key] = entries[key] = Entry(key, change.value, change.version)
            self._gone.pop(key, None)
        for prefix, listener in self._listeners:
            if key.startswith(prefix):
                listener(change)

    def load(self, listing: Listing) -> None:
        """Loads the whole store: listed entries exist, unlisted ones older than the listing do not."""
        listed = {entry.key for entry in listing.entries}
        for entry in self.list(""):
            if entry.key not in listed and entry.version < listing.version:
                self.apply(Change(entry.key, None, listing.version))
        for entry in listing.entries:
            self.apply(Change(entry.key, entry.value, entry.version))
        self.settle(listing.version)

    def settle(self, version: int) -> None:
        """All changes up to a version were received in order: older ones will not come, so the deletions before it can be
        forgotten.
        """
        if self._gone:
            self._gone = {key: gone for key, gone in self._gone.items() if gone > version}
        self.settled = version
        for listener in self.settled_listeners:
            listener(version)
