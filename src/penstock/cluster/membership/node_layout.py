"""A node's view of the layout: its peers, the partitions that it holds and leads, and the positions that it must report.

The store's changes and ticks come in, effects go out; `runtime/cluster/peers/layout_follower.py` and the simulation carry
them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.cluster.layout.decoder import NameNews, NodeNews, PartitionNews, decode, decode_name
from penstock.cluster.layout.entries import NODES, PARTITIONS, QUEUES, NodeEntry, PartitionEntry
from penstock.cluster.layout.positions import asked_of
from penstock.cluster.membership.store_requests import Outcome, Unknown

LOOK_MS = 500
"""The interval at which logs of which positions are requested are checked for growth and damage."""


class ApplyNodes(NamedTuple):
    """An effect: these nodes are alive."""

    nodes: Mapping[str, NodeEntry]


class ApplyEntry(NamedTuple):
    """An effect: this is the entry of a partition."""

    entry: PartitionEntry
    version: int


class EntryGone(NamedTuple):
    """An effect: the entry of a partition is no longer in the store, or only newer versions can read it."""

    partition: int
    unreadable: bool = False


class QueueNamed(NamedTuple):
    """An effect: clients find this queue under a name; None: there is none."""

    name: str
    queue_id: int | None


class OwnEntryHeard(NamedTuple):
    """An effect: the present entry under the node's own key."""

    value: bytes | None
    version: int


class SayPositions(NamedTuple):
    """An effect: the lengths of these partitions' logs must be written to the store."""

    asked: list[int]


class ProposalFailed(NamedTuple):
    """An effect: the outcome of the node's proposal for a partition is unknown."""

    partition: int


class Unreadable(NamedTuple):
    """An effect: a sentence for the log, with its values as fields."""

    sentence: str
    fields: Mapping[str, str | int]


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
FOLLOWED = (NODES, QUEUES, PARTITIONS)
"""The entries that a node follows."""


class NodeLayout:
    """The nodes and partitions that one node knows."""

    def __init__(self, name: str, now_ms: int) -> None:
        self._name = name
        self._nodes: dict[str, NodeEntry] = {}
        self._partitions: dict[int, PartitionEntry] = {}
        self._look_ms = now_ms
        self._settled = 0
        """All changes up to this version were received."""
        self._early: dict[str, tuple[int, Effect]] = {}
        """By queue: changes that arrived before older changes of other entries, which may say that partitions of the name are
        deleted.
        """

    def changed(self, key: str, value: bytes | None, version: int, now_ms: int) -> list[Effect]:
        """An entry is so now; None: it is gone."""
        name_news = decode_name(key, value)
        if name_news is not None:
            self._early[name_news.queue] = version, _queue_changed(name_news)
            return self.settled(self._settled)
        match decode(key, value, FOLLOWED):
            case NodeNews() as news:
                return self._node_changed(news, value, version)
            case PartitionNews() as news:
                return self._partition_changed(news, version, now_ms)
            case _:
                return []

    def settled(self, version: int) -> list[Effect]:
        """All changes up to a version were received: the meaning of names as of then is known."""
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
        """The outcome of the node's request to change an entry. After a conflict the layout shows the present entry."""
        return [ProposalFailed(partition)] if isinstance(outcome, Unknown) else []

    def _node_changed(self, news: NodeNews, value: bytes | None, version: int) -> list[Effect]:
        effects: list[Effect] = []
        if news.node == self._name:
            effects.append(OwnEntryHeard(value, version))
        if news.failure is not None:
            return [*effects, _unreadable("node", news.node, news.failure.why)]
        if news.entry is None:
            self._nodes.pop(news.node, None)
        else:
            self._nodes[news.node] = news.entry
        return [*effects, ApplyNodes(self._nodes), self._say_positions()]

    def _partition_changed(self, news: PartitionNews, version: int, now_ms: int) -> list[Effect]:
        number, entry, failure = news
        if failure is not None and failure.is_too_new:
            # What the queue promises now is more than this node knows to keep: it serves it no longer.
            self._partitions.pop(number, None)
            sentence = f"partition {number} is out of service on this node: {failure.why}"
            return [
                EntryGone(number, unreadable=True),
                Unreadable(sentence, {"partition": number, "reason": failure.why}),
            ]
        if failure is not None:
            return [_unreadable("partition", number, failure.why)]
        if entry is None:
            self._partitions.pop(number, None)
            return [EntryGone(number)]
        self._partitions[number] = entry
        if asked_of(self._name, (entry,), self._nodes):
            self._look_ms = now_ms  # after all changes that arrive together
        return [ApplyEntry(entry, version)]

    def _say_positions(self) -> SayPositions:
        return SayPositions(asked_of(self._name, self._partitions.values(), self._nodes))


def _unreadable(noun: str, name: str | int, reason: str) -> Unreadable:
    sentence = f"the entry of {noun} {name} cannot be read: {reason}"
    return Unreadable(sentence, {noun: name, "reason": reason})


def _queue_changed(news: NameNews) -> Effect:
    if news.failure is not None:
        return _unreadable("queue", news.queue, news.failure.why)
    # One that is being deleted is nowhere to move to, and may never have been made (`cluster/manager/retirement.py`).
    queue = news.entry
    return QueueNamed(news.queue, queue.queue_id if queue is not None and queue.state == "ready" else None)
