"""What a node makes of the layout as it hears of it: whom it may meet, what it holds and leads, what it has to say.

The store's changes and ticks come in, effects go out; `runtime/cluster/peers/layout_follower.py` and the simulation carry them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.layout.positions import asked_of, is_led
from penstock.cluster.membership.store_requests import Outcome, Unknown
from penstock.model.document import TooOldError

LOOK_MS = 500
"""How often it is looked whether a log that somebody asks about has become longer, or damaged."""


class ApplyNodes(NamedTuple):
    """An effect: these nodes live."""

    nodes: Mapping[str, NodeEntry]


class ApplyEntry(NamedTuple):
    """An effect: the entry of a partition is this one."""

    entry: PartitionEntry
    version: int


class EntryGone(NamedTuple):
    """An effect: the entry of a partition is no longer in the store, or only newer versions can read it."""

    partition: int
    unreadable: bool = False


class QueueNamed(NamedTuple):
    """An effect: the queue that clients find under a name is this one; None: there is none."""

    name: str
    queue_id: int | None


class OwnEntryHeard(NamedTuple):
    """An effect: this stands under the node's own key."""

    value: bytes | None
    version: int


class SayPositions(NamedTuple):
    """An effect: how far the logs of these partitions go is to stand in the store."""

    asked: list[int]


class ProposalFailed(NamedTuple):
    """An effect: it is not known what became of the node's proposal for a partition."""

    partition: int


class Unreadable(NamedTuple):
    """An effect: a sentence for people."""

    sentence: str


Effect = (
    ApplyNodes
    | ApplyEntry
    | EntryGone
    | QueueNamed
    | OwnEntryHeard
    | SayPositions
    | ProposalFailed
    | Unreadable
)
FOLLOWED = (layout.NODES, layout.QUEUES, layout.PARTITIONS)
"""The entries that a node hears of."""


class NodeLayout:
    """The nodes and partitions that one node has heard of."""

    def __init__(self, name: str, now_ms: int) -> None:
        self._name = name
        self._nodes: dict[str, NodeEntry] = {}
        self._partitions: dict[int, PartitionEntry] = {}
        self._look_ms = now_ms
        self._settled = 0
        """Every change up to this version was heard of."""
        self._early: dict[str, tuple[int, Effect]] = {}
        """By queue: news that came before older news of other entries, which may say that partitions of the name are deleted."""

    def changed(self, key: str, value: bytes | None, version: int, now_ms: int) -> list[Effect]:
        """An entry is so now; None: it is gone."""
        if key.startswith(layout.NODES):
            return self._node_changed(key.removeprefix(layout.NODES), value, version)
        if key.startswith(layout.PARTITIONS):
            return self._partition_changed(int(key.removeprefix(layout.PARTITIONS)), value, version, now_ms)
        if key.startswith(layout.QUEUES):
            name = key.removeprefix(layout.QUEUES)
            self._early[name] = version, self._queue_changed(name, value)
            return self.settled(self._settled)
        return []

    def settled(self, version: int) -> list[Effect]:
        """Every change up to a version was heard of: what names mean as of then can be relied on."""
        self._settled = version
        ripe = [name for name, (at, _) in self._early.items() if at <= version] if self._early else []
        return [self._early.pop(name)[1] for name in ripe]

    def tick(self, now_ms: int) -> list[Effect]:
        """Time has passed."""
        if now_ms < self._look_ms:
            return []
        self._look_ms = now_ms + LOOK_MS
        return [self._say_positions()]

    def next_ms(self) -> int:
        """When to tick at the latest."""
        return self._look_ms

    def proposed(self, partition: int, outcome: Outcome) -> list[Effect]:
        """What became of the node's wish to change an entry. After a conflict the layout tells what stands there now."""
        return [ProposalFailed(partition)] if isinstance(outcome, Unknown) else []

    def _node_changed(self, name: str, value: bytes | None, version: int) -> list[Effect]:
        effects: list[Effect] = []
        if name == self._name:
            effects.append(OwnEntryHeard(value, version))
        try:
            if value is None:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = layout.decode_node(value)
        except msgspec.MsgspecError as error:
            return [*effects, Unreadable(f"the entry of node {name} cannot be read: {error}")]
        return [*effects, ApplyNodes(self._nodes), self._say_positions()]

    def _queue_changed(self, name: str, value: bytes | None) -> Effect:
        if value is None:
            return QueueNamed(name, None)
        try:
            queue = layout.decode_named_queue(value)
        except msgspec.MsgspecError as error:
            return Unreadable(f"the entry of queue {name} cannot be read: {error}")
        # One that is being deleted is nowhere to move to, and may never have been made (`cluster/manager/retirement.py`).
        return QueueNamed(name, queue.queue_id if queue.state == "ready" else None)

    def _partition_changed(self, number: int, value: bytes | None, version: int, now_ms: int) -> list[Effect]:
        if value is None:
            self._partitions.pop(number, None)
            return [EntryGone(number)]
        try:
            entry = layout.decode_partition(value)
        except TooOldError as error:
            # What the queue promises now is more than this node knows to keep: it serves it no longer.
            self._partitions.pop(number, None)
            sentence = f"partition {number} is left alone: {error.message}"
            return [EntryGone(number, unreadable=True), Unreadable(sentence)]
        except msgspec.MsgspecError as error:
            return [Unreadable(f"the entry of partition {number} cannot be read: {error}")]
        self._partitions[number] = entry
        if self._name in entry.replicas and not is_led(entry, self._nodes):
            self._look_ms = now_ms  # after all changes that arrive together
        return [ApplyEntry(entry, version)]

    def _say_positions(self) -> SayPositions:
        return SayPositions(asked_of(self._name, self._partitions.values(), self._nodes))
