"""The layout as a node has heard of it: every partition of the cluster, and who leads the queues that messages move to.

An entry can be hidden: it is missing in the store, or a newer version wrote it and this one cannot read it. Its partition is still there, so
it is remembered as it was heard of last. A node that starts while an entry is hidden has nothing to remember. So it knows that its
layout is whole only after it has followed the store for `GONE_MS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.move_target import MoveTarget

ORDINAL_MARK = "~"
GONE_MS = 600_000
"""An entry that is missing for so long does not come back, although nobody saw its partition given up."""
STEP_MS = 10_000
"""No more than this passes between two looks at the time: a clock that jumps does not end what is waited for."""
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
    """By the time that this view has seen pass."""


class PlaceInQueue(NamedTuple):
    """Which partition of its queue it is, and of how many."""

    queue_id: int
    ordinal: int
    partitions: int


def local_name(queue: str, ordinal: int) -> str:
    """The local name of a partition; no queue name contains this mark."""
    return f"{queue}{ORDINAL_MARK}{ordinal}" if ordinal else queue


class LayoutView:
    """Entries by partition and by name. Versions only rise: older ones are ignored."""

    def __init__(self) -> None:
        self._known: dict[int, KnownEntry] = {}
        self._there: dict[str, dict[int, dict[int, int]]] = {}
        """By name, queue and ordinal: partitions that have not ended, hidden ones too. A name may be used again by a later queue, and by
        two that are made at once."""
        self._named: dict[str, int] = {}
        """By name: the queue that was made under it."""
        self.unreadable: set[int] = set()
        """Partitions whose entries only newer versions can read."""
        self.missing: dict[int, MissingEntry] = {}
        self.ended: dict[int, PlaceInQueue] = {}
        """Partitions that this node saw given up, or missed for so long that they do not come back; the oldest are forgotten."""
        self._unread: dict[int, PartitionEntry] = {}
        """What was known of those that cannot be read any more."""
        self.followed_until_ms = 0
        """Up to then the node knows that the store answers it: what is put back, it hears of."""
        self._passed_ms = 0
        """The time that passed while this node looked."""
        self._looked_ms: int | None = None
        self._whole_ms = GONE_MS
        """When every entry that may come back has been heard of; it counts from the first news on."""
        self._has_begun = False

    # -- news ------------------------------------------------------------------------------------------------

    def put(self, entry: PartitionEntry, version: int) -> bool:
        """Takes an entry in; False where it is no news."""
        self._begin()
        known = self._known.get(entry.partition)
        if known is not None and version <= known.version:
            return False
        self._known[entry.partition] = KnownEntry(entry, version)
        self.unreadable.discard(entry.partition)
        self.ended.pop(entry.partition, None)
        self._unread.pop(entry.partition, None)
        self.missing.pop(entry.partition, None)
        if entry.retired:
            self._end(entry)
        else:
            queues = self._there.setdefault(entry.queue, {})
            queues.setdefault(entry.queue_id, {})[entry.ordinal] = entry.partition
        return True

    def name(self, name: str, queue_id: int | None) -> bool:
        """The queue that clients find under a name is this one; None: there is none. False where it is no news."""
        self._begin()
        if self._named.get(name) == queue_id:
            return False
        if queue_id is None:
            self._named.pop(name, None)
        else:
            self._named[name] = queue_id
        return True

    def gone(self, partition: int, now_ms: int, *, unreadable: bool = False) -> None:
        """The entry is no longer in the store, or this version cannot read it any more."""
        self._begin()
        self.pass_time(now_ms)
        entry, was_unreadable = self.last(partition), partition in self.unreadable
        self._known.pop(partition, None)
        self._unread.pop(partition, None)
        if unreadable:
            self.unreadable.add(partition)
            self.missing.pop(partition, None)
            if entry is not None:
                self._unread[partition] = entry
            return
        self.unreadable.discard(partition)
        if entry is None:
            if was_unreadable:  # its name was never heard, and it may come back
                self._whole_ms = self._passed_ms + GONE_MS
        elif entry.retired:
            self._end(entry)
        elif partition not in self.missing:
            self.missing[partition] = MissingEntry(entry, self._passed_ms)

    def _end(self, entry: PartitionEntry) -> None:
        self.ended[entry.partition] = PlaceInQueue(entry.queue_id, entry.ordinal, entry.settings.partitions)
        if len(self.ended) > ENDED_AT_MOST:
            del self.ended[next(iter(self.ended))]
        queues = self._there.get(entry.queue, {})
        ordinals = queues.get(entry.queue_id, {})
        if ordinals.get(entry.ordinal) == entry.partition:
            del ordinals[entry.ordinal]
        if not ordinals:
            queues.pop(entry.queue_id, None)
        if not queues:
            self._there.pop(entry.queue, None)

    # -- time ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun, self._whole_ms = True, self._passed_ms + GONE_MS

    def pass_time(self, now_ms: int) -> None:
        """Time has passed: `STEP_MS` at most, however far the clock went on, and only while the node hears of the store."""
        if self._looked_ms is not None and now_ms <= self.followed_until_ms:
            self._passed_ms += min(max(now_ms - self._looked_ms, 0), STEP_MS)
        self._looked_ms = now_ms

    def next_ms(self) -> int | None:
        """When to look at the time again; None: nothing depends on it."""
        depends = self.missing or (self._has_begun and not self.is_whole)
        return (self._looked_ms or 0) + STEP_MS // 2 if depends else None

    @property
    def is_whole(self) -> bool:
        """Whether no entry was missing when this node began to listen, or is one of those that do not come back."""
        return self._has_begun and self._passed_ms >= self._whole_ms

    def take_lost(self) -> list[int]:
        """Partitions whose entries were missing for so long that they do not come back."""
        due_ms = self._passed_ms - GONE_MS
        lost = {number: entry for number, (entry, since_ms) in self.missing.items() if since_ms <= due_ms}
        for partition, entry in lost.items():
            del self.missing[partition]
            self._end(entry)
        return list(lost)

    # -- what is known ---------------------------------------------------------------------------------------

    def get(self, partition: int) -> KnownEntry | None:
        """The known entry of a partition."""
        return self._known.get(partition)

    def last(self, partition: int) -> PartitionEntry | None:
        """The entry of a partition as it was heard of last: it may be hidden now."""
        known, missing = self._known.get(partition), self.missing.get(partition)
        if known is not None:
            return known.entry
        return missing.entry if missing is not None else self._unread.get(partition)

    def joined(self, partition: int, node: str) -> int | None:
        """Which membership of a node it is that holds the partition (`PartitionEntry.joined`); None: that is not known."""
        known = self._known.get(partition)
        return known.entry.joined.get(node, 0) if known is not None else None

    def __iter__(self) -> Iterator[KnownEntry]:
        return iter(list(self._known.values()))

    def nameless(self) -> list[int]:
        """Partitions whose entries were never read: they may have any name."""
        return sorted(self.unreadable - self._unread.keys()) if self.unreadable else []

    def find(self, name: str, ordinal: int = 0) -> PartitionEntry | None:
        """The partition that a name means: its own where it has an ordinal, else the one that goes with `ordinal`.

        The same name and ordinal give the same partition for as long as the queue lives, so that a message that is
        moved twice arrives once. A queue that is not made yet is not found, though its partitions are there: should another
        one be made under its name first, they go, with what is in them.
        """
        queue = name.partition(ORDINAL_MARK)[0]
        partition = self._at(name, self._named.get(queue, 0), ordinal)
        known = self._known.get(partition) if partition is not None else None
        return known.entry if known is not None and not known.entry.deleted else None

    def queue_of(self, name: str) -> int | None:
        """The queue that clients find under a name, whether or not entries of its partitions are hidden; None: there is none."""
        return self._named.get(name.partition(ORDINAL_MARK)[0])

    def of_name(self, name: str, ordinal: int) -> list[PartitionEntry]:
        """Every partition that `find` gives for a name and an ordinal, gave, or may give yet, and that has not ended, as last heard of."""
        queues = self._there.get(name.partition(ORDINAL_MARK)[0], ())
        found = [self._at(name, queue_id, ordinal) for queue_id in sorted(queues)]
        return [entry for one in found if one is not None and (entry := self.last(one)) is not None]

    def has_ended(self, name: str, queue_id: int, ordinal: int) -> bool:
        """Whether this node knows that the partition of a queue that goes with a name and an ordinal has ended."""
        _, mark, own = name.partition(ORDINAL_MARK)
        return any(
            place.queue_id == queue_id and place.ordinal == _wanted(mark, own, ordinal, place.partitions)
            for place in self.ended.values()
        )

    def _at(self, name: str, queue_id: int, ordinal: int) -> int | None:
        queue, mark, own = name.partition(ORDINAL_MARK)
        ordinals = self._there.get(queue, {}).get(queue_id)
        if not ordinals:
            return None
        one = self.last(next(iter(ordinals.values())))
        count = one.settings.partitions if one is not None else 1
        return ordinals.get(_wanted(mark, own, ordinal, count))

    def is_undecided(self, aim: MoveTarget) -> bool:
        """Whether a queue that is meant may be there although `find` does not give its partition.

        The queue has its name and not all of its partitions: an entry is missing. Or it has partitions that are not deleted, and not its
        name: it is being made or deleted, or its entry is missing.
        """
        queue = aim.name.partition(ORDINAL_MARK)[0]
        named = self._named.get(queue)
        if named is not None and (aim.queue_id is None or aim.queue_id == named):
            return True
        return any(
            not entry.deleted
            for queue_id, ordinals in self._there.get(queue, {}).items()
            if aim.is_meant(queue_id)
            for entry in map(self.last, ordinals.values())
            if entry is not None
        )


def _wanted(mark: str, own: str, ordinal: int, count: int) -> int:
    return int(own) if mark and own.isdecimal() else ordinal % count
