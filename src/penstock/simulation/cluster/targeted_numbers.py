"""A targeted fault for reused numbers: primaries of an `async` queue that acknowledge records without replicas, and fail.

In some runs the only replica in sync goes as well, and an operator lets one lead that lacks more (an unclean election). Of a `sync`
queue that may be one with messages that were never committed, whose numbers the next primary has given to others.
"""

from __future__ import annotations

from penstock.cluster.layout.entries import PartitionEntry, UncleanEntry, encode, unclean_key
from penstock.simulation.cluster.targeted_faults import Hunter
from penstock.simulation.tasks import Pause, Steps

_ELECTED_MS = 7_000
_OUT_OF_SYNC_MS = 2_500
_SENT_MS = 3_000


class NumberHunter(Hunter):
    """Hunts the primary of one queue repeatedly."""

    def hunt(self, queue: str, every_ms: int, *, unclean: bool) -> None:
        """Begins."""
        self._tasks.start(self._hunt_primaries(queue, every_ms, unclean=unclean))

    def _hunt_primaries(self, queue: str, every_ms: int, *, unclean: bool) -> Steps[None]:
        while not self._is_over():
            yield Pause(self._random.randint(every_ms // 3, every_ms))
            found = [
                entry
                for entry in self._entries().values()
                if entry.queue == queue and entry.serving == entry.epoch and entry.primary is not None
            ]
            if not found or self._is_over() or not self._machines[found[0].primary or ""].is_up:
                continue
            entry, primary = found[0], found[0].primary or ""
            others = [name for name in self._machines if name != primary]
            self._say(f"{primary} reaches nobody of partition {entry.partition} but its clients")
            self._operators.counts["hunt: lost suffix"] += 1
            self._part(primary, *others)
            if unclean and entry.settings.replication == "sync" and self._random.random() < 0.4:
                yield from self._bring_back(entry, primary)
            elif unclean and self._random.random() < 0.5:
                yield from self._lose_all_in_sync(entry, primary)
            elif self._random.random() < 0.5:
                yield from self._lose_primary(entry, primary)
            else:
                yield from self._lose_sight(entry, primary)

    def _lose_primary(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """It accepts some more, and its power is cut; it comes back before or after the next election."""
        yield Pause(self._random.choice((20, 200, 600, 900)))
        yield from self._next_commit(entry, primary, 400)
        if self._is_over():
            return
        self._cut_power([primary], self._random.choice((1_000, 5_000, 8_000)))
        self._fabric.mend()
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _lose_sight(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """It is also disconnected from the store until another one leads, and then it comes back."""
        self._metadata.unreachable_from.add(primary)
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)
        yield Pause(self._random.choice((0, 100, 600)))
        if not self._is_over():
            self._fabric.mend()

    def _lose_all_in_sync(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """It continues alone in sync, and fails: an operator permits the election of another one."""
        alone = yield from self._until(lambda: self._now(entry).in_sync == [primary], _OUT_OF_SYNC_MS)
        yield from self._next_commit(entry, primary, 300)
        if self._is_over():
            return
        self._cut_power([primary], self._random.choice((5_000, 9_000)))
        self._fabric.mend()
        if alone:
            self._allow_unclean(entry)
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _bring_back(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """It writes records that no other replica gets, until another one leads and has committed something. Then only this one is left."""
        self._metadata.unreachable_from.update([primary, *self._fabric.strays()])
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)
        now = self._now(entry)
        leader = now.primary or primary
        if leader != primary:
            before = self._sent(now, leader)
            yield from self._until(lambda: self._sent(now, leader) > before, _SENT_MS)
            yield from self._next_commit(now, leader, 200)
            yield Pause(50)  # clients are told
        if self._is_over():
            return
        if leader != primary:
            # Gone for longer than any election takes.
            self._cut_power([name for name in self._machines if name != primary], 9_000)
            self._allow_unclean(now)
        self._fabric.mend()
        yield from self._until(lambda: self._is_replaced(now), _ELECTED_MS)

    def _allow_unclean(self, entry: PartitionEntry) -> None:
        self._say(f"an operator lets somebody else lead partition {entry.partition}")
        self._operators.counts["unclean election allowed"] += 1
        order = UncleanEntry(partition=entry.partition, epoch=entry.epoch)
        self._metadata.put(unclean_key(entry.partition), encode(order))
