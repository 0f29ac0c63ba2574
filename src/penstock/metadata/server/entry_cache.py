"""The entries that a metadata server keeps: those it read, wrote or received last, within a number of bytes.

Versions only rise, so late changes never undo newer ones. The result of a read or write is kept only if no newer version
was received meanwhile: an entry that was deleted meanwhile is not restored by its last reader.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from penstock.metadata.store.interface import ABSENT, Change, Entry, Listing

ENTRY_BYTES = 250
"""The memory of an entry besides its key and its value."""
GUARDS_KEPT = 512


class Ticket:
    """A read or a write of one key in progress."""

    __slots__ = ("key", "newest", "void")

    def __init__(self, key: str) -> None:
        self.key = key
        self.newest = ABSENT
        """The newest version of the key that was received since it began."""
        self.void = False
        """Everything was loaded again since it began."""


class EntryCache:
    """If there is no room, the least recently used entries are dropped."""

    def __init__(self, limit_bytes: int, keeps: Callable[[str], bool] = lambda key: True) -> None:
        self.keeps = keeps
        """Whether a key is to be here at all."""
        self.bytes = 0
        self.complete = False
        """Whether every entry of the store is here, as of `heard`."""
        self.heard = ABSENT
        """The store's watch has delivered everything up to this version."""
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._under_way: dict[str, set[Ticket]] = {}
        self._guards: dict[str, int] = {}
        """Keys that are gone from here, and the version up to which changes of them are too old to be used."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Entry | None:
        """The entry under a key, as far as is known."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def version_of(self, key: str) -> int:
        """The version of an entry, `ABSENT` where there is none; does not count as a use of it."""
        entry = self._entries.get(key)
        return entry.version if entry is not None else ABSENT

    def list(self, prefix: str) -> Listing | None:
        """All entries under the prefix by key, or None if not all of them are here."""
        if not self.complete:
            return None
        found = sorted(entry for key, entry in self._entries.items() if key.startswith(prefix))
        return Listing(tuple(found), self.heard)

    # -- own reads and writes --------------------------------------------------------------------------------

    def begin(self, key: str) -> Ticket:
        """A read or write begins; `finish` or `abandon` it."""
        ticket = Ticket(key)
        self._under_way.setdefault(key, set()).add(ticket)
        return ticket

    def finish(self, ticket: Ticket, value: bytes | None, version: int) -> None:
        """It found or wrote this; a `value` of None: there is none, as of `version` where that is known."""
        self.abandon(ticket)
        if ticket.void or ticket.newest > version > ABSENT:
            return
        if version == ABSENT:
            known = self._entries.get(ticket.key)
            if ticket.newest or known is None:
                return
            version = known.version + 1  # deleted at some version after the one that was known
        self._take(Change(ticket.key, value, version))

    def abandon(self, ticket: Ticket) -> None:
        """It had no result."""
        tickets = self._under_way.get(ticket.key)
        if tickets is not None:
            tickets.discard(ticket)
            if not tickets:
                del self._under_way[ticket.key]

    # -- the store's own news --------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """A change from the watch."""
        self._take(change)
        self.heard = max(self.heard, change.version)
        if len(self._guards) > GUARDS_KEPT:
            self._guards = {key: upto for key, upto in self._guards.items() if upto > self.heard}

    def load(self, listing: Listing, everything: bool) -> None:
        """Begins again with a listing; `everything`: it contains all existing entries."""
        for tickets in self._under_way.values():
            for ticket in tickets:
                ticket.void = True
        self._entries.clear()
        self._guards.clear()
        self.bytes = 0
        self.heard = listing.version
        self.complete = everything
        for entry in listing.entries:
            self._take(Change(*entry))

    def keep_only_own(self) -> None:
        """Drops what is not to be here any more."""
        for key in [key for key in self._entries if not self.keeps(key)]:
            self._drop(key)
            self.complete = False

    # -- inside ----------------------------------------------------------------------------------------------

    def _take(self, change: Change) -> None:
        key, value, version = change
        for ticket in self._under_way.get(key, ()):
            ticket.newest = max(ticket.newest, version)
        if version <= max(self.version_of(key), self._guards.get(key, ABSENT)):
            return
        known = self._entries.get(key)
        if known is not None:
            self._forget(known)
        self._guards.pop(key, None)
        if value is None:
            if version > self.heard:
                self._guards[key] = version
        elif self.keeps(key):
            self._entries[key] = Entry(key, value, version)
            self.bytes += len(key) + len(value) + ENTRY_BYTES
            self._make_room()
        else:
            self.complete = False

    def _make_room(self) -> None:
        while self.bytes > self._limit_bytes and self._entries:
            self._drop(next(iter(self._entries)))
            self.complete = False

    def _drop(self, key: str) -> None:
        entry = self._entries[key]
        self._forget(entry)
        if entry.version > self.heard:  # later changes of the watch up to here are older
            self._guards[key] = entry.version - 1

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.key]
        self.bytes -= len(entry.key) + len(entry.value) + ENTRY_BYTES
