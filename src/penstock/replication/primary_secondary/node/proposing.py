"""Changes of the layout that a node requests: that it serves, which replicas are in sync, that it hands over, that it has
dropped.

A change is requested once and stays pending until its outcome is known, because it may have been made without an answer.
While it is pending both in-sync sets count, and the same change is requested again until the entry has another version.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.elections import handed_over
from penstock.cluster.layout.sequence_numbers import begun_densely, left_exactly, noted
from penstock.cluster.manager.idle_expiry import primary_says
from penstock.replication.cluster_interface import Proposal
from penstock.replication.primary_secondary.core.replica_progress import LAG_MS
from penstock.replication.primary_secondary.node.layout_view import KnownEntry
from penstock.replication.primary_secondary.node.leader.draining import Draining
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.replication.primary_secondary.node.state import ClusterState

LOOK_MS = 50
"""The interval of checks for changes that time causes; everything else is checked in the turn in which it happens."""
LOOKS_AT_ONCE = 500
"""The partitions that one turn checks; the others follow in the next turns. A check of 5,000 that lack a replica took 25 ms."""
RETRY_MS = 200
STALL_MS = 100
"""If a check is so much later than planned, this node was paused, and received no messages meanwhile."""


class Proposer:
    """The requests of this node to the metadata store."""

    def __init__(self, state: ClusterState, draining: Draining) -> None:
        self._state = state
        self._draining = draining
        self._watched: dict[int, None] = {}
        self._due: list[int] = []
        """Of those: what is left of a look at all."""
        self._urgent: dict[int, None] = {}
        """Of those: the partitions that are not served until the requested change is in the store."""
        self.last_seen_ms: dict[str, int] = {}
        """When the stream to a node was lost."""
        self._asked: dict[int, tuple[Proposal, int | None]] = {}
        """By partition: the requested change, and when to request it again (None: an answer is pending)."""
        self._dropped: dict[int, int] = {}
        """Dropped partitions → the position up to which the journal must be on disk before the drop is reported."""
        self._closing: list[LedPartition] = []
        self._next_look_ms = 0
        self._looks_by_ms: int | None = None
        """The latest time of the next check; None: no check is needed."""

    def look_at(self, partition_id: int) -> None:
        """Something of the partition has changed."""
        self._watched[partition_id] = None

    def look_now(self, partition_id: int) -> None:
        """The same, for a change that others may wait for."""
        self._watched[partition_id] = None
        self._urgent[partition_id] = None

    def settled(self, partition_id: int, version: int) -> None:
        """The entry has a new version: a change that was requested for the older one has happened or never will."""
        asked = self._asked.get(partition_id)
        if asked is not None and version > asked[0].version:
            del self._asked[partition_id]

    def gone(self, partition_id: int) -> None:
        """There is no entry any more: nothing is wanted of it."""
        for table in (self._watched, self._urgent, self._asked, self._dropped):
            table.pop(partition_id, None)

    def failed(self, partition_id: int, now_ms: int) -> None:
        """The store could not be asked, or its answer was lost."""
        asked = self._asked.get(partition_id)
        if asked is not None:
            self._asked[partition_id] = (asked[0], now_ms + RETRY_MS)
            self.look_at(partition_id)

    def next_ms(self) -> int | None:
        """When to look again."""
        if self._due:
            return self._state.now_ms
        return self._next_look_ms if self._watched else None

    def take(self, now_ms: int) -> list[Proposal]:
        """The changes to request now."""
        self._note_stall(now_ms)
        found = self._take(now_ms)
        self._looks_by_ms = self._next_look_ms if self._watched else None
        return found

    def take_closing(self) -> list[LedPartition]:
        """An effect: partitions that the last proposals close. No client may use them from the moment of the proposal."""
        closing, self._closing = self._closing, []
        return closing

    def _note_stall(self, now_ms: int) -> None:
        """On a machine with too much to do the primary may be what is late: its followers are not to blame for that."""
        if self._looks_by_ms is None or now_ms - self._looks_by_ms < STALL_MS:
            return
        for led in self._state.led.values():
            led.primary.stalled(now_ms - self._looks_by_ms, now_ms)

    def _take(self, now_ms: int) -> list[Proposal]:
        if not self._due and self._watched and now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + LOOK_MS
            self._due = [*reversed(self._watched)]
        if not self._due and not self._urgent:
            return []
        urgent, self._urgent = self._urgent, {}
        for _ in range(min(LOOKS_AT_ONCE, len(self._due))):
            urgent[self._due.pop()] = None
        return self._look([partition_id for partition_id in urgent if partition_id in self._watched], now_ms)

    def _look(self, due: list[int], now_ms: int) -> list[Proposal]:
        found: list[Proposal] = []
        for partition_id in due:
            known = self._state.layout.get(partition_id)
            if known is None:
                del self._watched[partition_id]
                continue
            asked = self._asked.get(partition_id)
            if asked is not None:
                if asked[1] is not None and asked[1] <= now_ms:
                    self._asked[partition_id] = (asked[0], None)
                    found.append(asked[0])
                elif asked[1] is None:
                    del self._watched[partition_id]  # until there is an answer
                continue
            proposal = self._wanted(known, now_ms)
            if proposal is not None:
                self._asked[partition_id] = (proposal, None)
                found.append(proposal)
            elif not self._is_open(partition_id):
                del self._watched[partition_id]
        return found

    def _is_open(self, partition_id: int) -> bool:
        """Whether time alone may change what is wanted."""
        led = self._state.led.get(partition_id)
        if led is None:
            return partition_id in self._dropped
        primary = led.primary
        gone = [
            node for node in primary.in_sync if node != self._state.node and node not in self._state.streams
        ]
        return bool(gone) or primary.next_lag_ms() is not None or partition_id in self._state.drains

    def _wanted(self, known: KnownEntry, now_ms: int) -> Proposal | None:
        entry, node = known.entry, self._state.node
        led = self._state.led.get(entry.partition)
        if led is None or led.epoch != entry.epoch:
            if node in entry.leaving and self._has_dropped(entry.partition):
                left = [other for other in entry.leaving if other != node]
                return Proposal(known.version, msgspec.structs.replace(entry, leaving=left))
            return None
        if entry.hand_over_to is not None:
            return self._hand_over(known, led, entry.hand_over_to)
        changed = self._draining.wanted(entry, now_ms) if entry.deleted else entry
        if changed.retired:
            return Proposal(known.version, changed)
        in_sync = led.primary.wanted_in_sync(now_ms, self._living(led, now_ms))
        if in_sync is not None:
            changed = msgspec.structs.replace(
                changed, in_sync=[name for name in entry.replicas if name in in_sync]
            )
        if entry.serving != led.epoch and led.primary.committed >= led.begun and led.skips is None:
            changed = msgspec.structs.replace(changed, serving=led.epoch)
        if changed.serving == led.epoch:
            changed = begun_densely(noted(changed, led.epoch, self._following(led)), led.dense)
        if not entry.deleted:
            changed = primary_says(changed, idle=self._state.parts.idle.is_found(entry.partition))
        if changed == entry:
            return None
        if changed.expiry != entry.expiry:
            self._closing.append(led)
        if in_sync is not None:
            led.primary.propose(in_sync)
        return Proposal(known.version, changed)

    def _has_dropped(self, partition_id: int) -> bool:
        """Whether the drop is on disk too: after a power cut it would not be requested again."""
        parts = self._state.parts
        if partition_id in parts.catalogue.partitions:
            self._dropped.pop(partition_id, None)
            return False
        position = self._dropped.setdefault(partition_id, parts.store.appended_position)
        if parts.store.committed_position < position:
            self._urgent[partition_id] = None
            return False
        del self._dropped[partition_id]
        return True

    def _living(self, led: LedPartition, now_ms: int) -> set[str]:
        """Nodes that are there, or were a moment ago; one that has also taken leave of the layout is not waited for."""
        living = set()
        for name in led.primary.followers:
            seen_ms = self.last_seen_ms.get(name, 0)
            left = seen_ms >= led.since_ms and name not in self._state.nodes
            if name in self._state.streams or (not left and now_ms - max(seen_ms, led.since_ms) < LAG_MS):
                living.add(name)
        return living

    def _hand_over(self, known: KnownEntry, led: LedPartition, successor: str) -> Proposal | None:
        """Accepts no more requests; when the successor has everything, gives it the next epoch.

        A partition that is still served, because the journal had no room when the entry arrived, is not handed over: it
        would accept more.
        """
        primary = led.primary
        follower, node = primary.followers.get(successor), self._state.nodes.get(successor)
        partition = self._state.parts.catalogue.partitions[led.partition_id]
        if (
            node is None
            or follower is None
            or self._state.serves(led.partition_id)
            or successor not in primary.in_sync
            or partition.index > min(follower.confirmed, primary.committed)
        ):
            return None
        left = left_exactly(known.entry, led.epoch, self._following(led))
        return Proposal(known.version, handed_over(left, node))

    def _following(self, led: LedPartition) -> int:
        """The number that the next message gets."""
        return self._state.parts.catalogue.partitions[led.partition_id].table.next
