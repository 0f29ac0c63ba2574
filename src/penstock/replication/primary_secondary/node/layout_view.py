"""The layout as this node knows it: every partition of the cluster, and the leaders of the queues that messages move to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.cluster.layout.entries import PartitionEntry

ORDINAL_MARK = "~"
GONE_MS = 600_000
"""After this time a missing entry does not return, even if its partition was not seen to be given up."""
ENDED_AT_MOST = 10_000
"""A deleted queue with messages of a partition that ended before these may wait `GONE_MS` longer."""


class KnownEntry(NamedTuple):
    """An entry, and the version that a change of it must name."""

    entry: PartitionEntry
    version: int


class MissingEntry(NamedTuple):
    """An entry that was removed from the store before its partition was given up. An operator may restore it."""

    entry: PartitionEntry
    since_ms: int

    @property
    def queue(self) -> str:
        """Its name."""
        return self.entry.queue


def local_name(queue: str, ordinal: int) -> str:
    """The local name of a partition; no queue name contains this mark."""
    return f"{queue}{ORDINAL_MARK}{ordinal}" if ordinal else queue


class LayoutView:
    """Entries by partition and by name. Versions only rise: older ones are ignored."""

    def __init__(self) -> None:
        self._known: dict[int, KnownEntry] = {}
        self._partitions: dict[str, dict[int, dict[int, int]]] = {}
        """By name, queue and ordinal. A name may be used again by a later queue, and by two that are made at once."""
        self._named: dict[str, int] = {}
        """By name: the queue that was made under it."""
        self._draining: dict[str, set[int]] = {}
        """By name: partitions of deleted queues that are not given up."""
        self.unreadable: set[int] = set()
        """Partitions whose entries only newer versions can read: they may have any name."""
        self.missing: dict[int, MissingEntry] = {}
        self.ended: dict[int, None] = {}
        """Partitions that were given up, or missing for so long that they do not return; the oldest are forgotten."""
        self._unread: dict[int, PartitionEntry] = {}
        """The last known entries of those that can no longer be read."""

    def put(self, entry: PartitionEntry, version: int) -> bool:
        """Takes an entry in; False where it is no news."""
        known = self._known.get(entry.partition)
        if known is not None and version <= known.version:
            return False
        self._known[entry.partition] = KnownEntry(entry, version)
        self.unreadable.discard(entry.partition)
        self.ended.pop(entry.partition, None)
        self._unread.pop(entry.partition, None)
        self.missing.pop(entry.partition, None)
        self._note_draining(entry, drains=entry.deleted and not entry.retired)
        if entry.retired or entry.deleted:
            self._unname(entry)
        else:
            queues = self._partitions.setdefault(entry.queue, {})
            queues.setdefault(entry.queue_id, {})[entry.ordinal] = entry.partition
        return True

    def name(self, name: str, queue_id: int | None) -> bool:
        """The queue that clients find under a name is this one; None: there is none. False where it is no news."""
        if self._named.get(name) == queue_id:
            return False
        if queue_id is None:
            self._named.pop(name, None)
        else:
            self._named[name] = queue_id
        return True

    def gone(self, partition: int, now_ms: int, *, unreadable: bool = False) -> None:
        """The entry is no longer in the store, or this version cannot read it any more."""
        if unreadable:
            self.unreadable.add(partition)
        else:
            self.unreadable.discard(partition)
        known = self._known.pop(partition, None)
        entry = known.entry if known is not None else self._unread.pop(partition, None)
        if entry is None:
            return
        self._unname(entry)
        if unreadable:
            self._unread[partition] = entry
            self._note_draining(entry, drains=False)
        elif entry.retired:
            self._note_draining(entry, drains=False)
            self._note_ended(partition)
        else:
            self.missing[partition] = MissingEntry(entry, now_ms)
            self._note_draining(entry, drains=entry.deleted)

    def _note_ended(self, partition: int) -> None:
        self.ended[partition] = None
        if len(self.ended) > ENDED_AT_MOST:
            del self.ended[next(iter(self.ended))]

    def _note_draining(self, entry: PartitionEntry, *, drains: bool) -> None:
        if drains:
            self._draining.setdefault(entry.queue, set()).add(entry.partition)
        elif entry.queue in self._draining:
            self._draining[entry.queue].discard(entry.partition)
            if not self._draining[entry.queue]:
                del self._draining[entry.queue]

    def draining(self, name: str, ordinal: int) -> list[PartitionEntry]:
        """Partitions of deleted queues that `find` returned for a name and an ordinal, and that are not given up."""
        queue, mark, own = name.partition(ORDINAL_MARK)
        entries = [
            self._known[one].entry if one in self._known else self.missing[one].entry
            for one in sorted(self._draining.get(queue, ()))
        ]
        return [one for one in entries if one.ordinal == _wanted(mark, own, ordinal, one.settings.partitions)]

    def _unname(self, entry: PartitionEntry) -> None:
        """The name means the partition no longer."""
        queues = self._partitions.get(entry.queue, {})
        ordinals = queues.get(entry.queue_id, {})
        if ordinals.get(entry.ordinal) == entry.partition:
            del ordinals[entry.ordinal]
        if not ordinals:
            queues.pop(entry.queue_id, None)
        if not queues:
            self._partitions.pop(entry.queue, None)

    def is_undecided(self, name: str) -> bool:
        """Whether a name has partitions and no queue, or a queue and not all of its partitions.

        A queue is being made or deleted under it, or an entry of it is missing.
        """
        queue = name.partition(ORDINAL_MARK)[0]
        if any(missing.queue == queue for missing in self.missing.values()):
            return True
        return queue not in self._named and queue in self._partitions

    def lost(self, partition: int) -> None:
        """An entry that was missing for long does not come back."""
        missing = self.missing.pop(partition, None)
        if missing is not None:
            self._note_draining(missing.entry, drains=False)
            self._note_ended(partition)

    def get(self, partition: int) -> KnownEntry | None:
        """The known entry of a partition."""
        return self._known.get(partition)

    def joined(self, partition: int, node: str) -> int | None:
        """Which membership of a node it is that holds the partition (`PartitionEntry.joined`); None: that is not known."""
        known = self._known.get(partition)
        return known.entry.joined.get(node, 0) if known is not None else None

    def __iter__(self) -> Iterator[KnownEntry]:
        return iter(list(self._known.values()))

    def find(self, name: str, ordinal: int = 0) -> PartitionEntry | None:
        """The partition that a name means: its own where it has an ordinal, else the one that goes with `ordinal`.

        The same name and ordinal give the same partition for as long as the queue lives, so that a message that is
        moved twice arrives once. A queue that is not made yet is not found, though its partitions are there: should another
        one be made under its name first, they go, with what is in them.
        """
        queue, mark, own = name.partition(ORDINAL_MARK)
        ordinals = self._partitions.get(queue, {}).get(self._named.get(queue, 0))
        if not ordinals:
            return None
        count = self._known[next(iter(ordinals.values()))].entry.settings.partitions
        wanted = _wanted(mark, own, ordinal, count)
        return self._known[ordinals[wanted]].entry if wanted in ordinals else None


def _wanted(mark: str, own: str, ordinal: int, count: int) -> int:
    return int(own) if mark and own.isdecimal() else ordinal % count
