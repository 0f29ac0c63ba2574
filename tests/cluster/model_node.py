"""A node of the model: its disk is a dictionary of lists, its decisions about replication are the product's."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.deletion import given_up
from penstock.cluster.layout.elections import handed_over
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, Position, PositionsEntry
from penstock.cluster.layout.positions import asked_of
from penstock.replication.primary_secondary.core.epochs import EpochHistory
from penstock.replication.primary_secondary.core.primary import Primary
from tests.cluster.model_store import ModelStore

Record = tuple[int, int]
"""(epoch, what)."""


def epochs_of(log: list[Record]) -> EpochHistory:
    """With which record of a log each epoch began."""
    history = EpochHistory()
    for index, (epoch, _) in enumerate(log, 1):
        if epoch != history.last:
            history.begin(epoch, index)
    return history


@dataclass
class Replica:
    """What survives a crash, and below it what does not."""

    log: list[Record] = field(default_factory=list)
    known_epoch: int = 0
    whole: bool = True
    """False: it has not had everything yet since it was made, or since its disk was replaced."""
    primary: Primary | None = None
    leads: int = 0
    begun: int = 0
    serves: bool = False
    hands_over: bool = False

    @property
    def epochs(self) -> EpochHistory:
        return epochs_of(self.log)


class Node:
    """Looks at the store when it has its turn, unless it is cut off."""

    def __init__(self, name: str, zone: str, store: ModelStore) -> None:
        self.name = name
        self.zone = zone
        self.store = store
        self.up = False
        self.cut_off = False
        """From the store."""
        self.isolated = False
        """From the other nodes."""
        self.started_ms = 0
        self.crashed_at = 0
        """After how many changes of the store."""
        self.replicas: dict[int, Replica] = {}

    # --- coming and going -----------------------------------------------------------------------------------

    def register(self, now_ms: int) -> None:
        self.up, self.cut_off, self.isolated, self.started_ms = True, False, False, now_ms
        entry = NodeEntry(node=self.name, zone=self.zone, native="", peers="", started_ms=now_ms)
        self.store.put(layout.node_key(self.name), layout.encode(entry), None)

    def crash(self) -> None:
        self.up = False
        for replica in self.replicas.values():
            replica.primary = None
        self.lose_lease()
        self.crashed_at = len(self.store.history)

    def lose_lease(self) -> None:
        self.store.delete(layout.node_key(self.name), None)
        self.store.delete(layout.positions_key(self.name), None)

    def wipe(self) -> None:
        """A new disk; the node is down."""
        self.replicas.clear()

    # --- a turn ---------------------------------------------------------------------------------------------

    def turn(self, now_ms: int) -> list[int]:
        """Acts on the layout; the partitions that it has begun to lead."""
        begun = []
        nodes = {
            key.removeprefix(layout.NODES): layout.decode_node(value)
            for key, value, _ in self.store.under(layout.NODES)
        }
        entries = []
        for key, value, version in self.store.under(layout.PARTITIONS):
            entry = layout.decode_partition(value)
            entries.append(entry)
            if self.name in entry.leaving:
                self.replicas.pop(entry.partition, None)
                left = [node for node in entry.leaving if node != self.name]
                self.store.put(key, layout.encode(msgspec.structs.replace(entry, leaving=left)), version)
            elif self.name in entry.replicas:
                replica = self._replica(entry)
                if self._is_to_lead(entry, replica):
                    self._lead(entry, replica, now_ms)
                    begun.append(entry.partition)
                replica.known_epoch = max(replica.known_epoch, entry.epoch)
                if replica.primary is not None:
                    self._keep(key, version, entry, replica, replica.primary, nodes, now_ms)
        self._say_positions(entries, nodes)
        return begun

    def _replica(self, entry: PartitionEntry) -> Replica:
        if entry.partition not in self.replicas:
            new = entry.epoch == 1 and entry.serving == 0
            self.replicas[entry.partition] = Replica(whole=new)
        return self.replicas[entry.partition]

    def _is_to_lead(self, entry: PartitionEntry, replica: Replica) -> bool:
        return (entry.primary, entry.primary_started_ms) == (self.name, self.started_ms) and (
            entry.epoch > max(replica.leads, replica.known_epoch)
        )

    def _lead(self, entry: PartitionEntry, replica: Replica, now_ms: int) -> None:
        replica.leads = replica.known_epoch = entry.epoch
        replica.log.append((entry.epoch, -entry.epoch))
        replica.begun = len(replica.log)
        replica.hands_over = replica.serves = False
        replica.primary = Primary(
            self.name,
            last=len(replica.log),
            replicas=entry.replicas,
            in_sync=entry.in_sync,
            synchronous=entry.settings.replication == "sync",
            least_in_sync=entry.settings.least_in_sync,
            now_ms=now_ms,
        )
        replica.primary.flushed(len(replica.log))

    def _keep(
        self,
        key: str,
        version: int,
        entry: PartitionEntry,
        replica: Replica,
        primary: Primary,
        nodes: dict[str, NodeEntry],
        now_ms: int,
    ) -> None:
        if (entry.epoch, entry.primary) != (replica.leads, self.name):
            replica.primary = None
            return
        primary.set_replicas(entry.replicas, entry.joined, now_ms)
        primary.decided(entry.in_sync)
        replica.hands_over = entry.hand_over_to is not None
        replica.serves = entry.serving == entry.epoch
        wanted = primary.wanted_in_sync(now_ms, nodes)
        if wanted is not None:
            primary.propose(wanted)
            changed = msgspec.structs.replace(entry, in_sync=[n for n in entry.replicas if n in wanted])
            if self.store.put(key, layout.encode(changed), version):
                primary.decided(wanted)
        elif entry.serving != entry.epoch and primary.committed >= replica.begun:
            self.store.put(key, layout.encode(msgspec.structs.replace(entry, serving=entry.epoch)), version)
        elif entry.deleted and replica.serves and not replica.hands_over:
            left = self.store.on_their_way.get(entry.partition, 0)
            if left:  # one arrives elsewhere
                self.store.on_their_way[entry.partition] = left - 1
            else:
                self.store.put(key, layout.encode(given_up(entry, "nothing is on its way any more")), version)
        elif entry.hand_over_to in nodes and self._has_everything(primary, entry.hand_over_to):
            successor = nodes[entry.hand_over_to]
            self.store.put(key, layout.encode(handed_over(entry, successor)), version)

    def _has_everything(self, primary: Primary, node: str) -> bool:
        follower = primary.followers.get(node)
        return follower is not None and follower.confirmed == primary.committed == primary.last

    def _say_positions(self, entries: list[PartitionEntry], nodes: dict[str, NodeEntry]) -> None:
        by_id = {entry.partition: entry for entry in entries}
        positions = {}
        for partition in asked_of(self.name, entries, nodes):
            replica = self.replicas.get(partition)
            if replica is not None:
                log = replica.log
                positions[partition] = Position(
                    by_id[partition].epoch, log[-1][0] if log else 0, len(log), replica.whole
                )
        words = PositionsEntry(node=self.name, started_ms=self.started_ms, positions=positions)
        said = self.store.get(layout.positions_key(self.name))
        if (said is None and positions) or (said is not None and said[0] != layout.encode(words)):
            self.store.put(layout.positions_key(self.name), layout.encode(words), None)
