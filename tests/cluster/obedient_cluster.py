"""A cluster whose nodes do at once what the layout asks of them: for tests of single decisions."""

from __future__ import annotations

import msgspec

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.deletion import given_up, taken_back
from penstock.cluster.layout.elections import handed_over
from penstock.cluster.layout.entries import (
    DrainEntry,
    LayoutEntry,
    NodeEntry,
    PartitionEntry,
    Position,
    PositionsEntry,
    QueueEntry,
    UncleanEntry,
)
from penstock.cluster.layout.partition_settings import settings_of_partition
from penstock.cluster.layout.positions import asked_of
from penstock.cluster.layout.serving import is_led
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.decide import decide
from penstock.cluster.manager.placement import Census, first_entries, place
from penstock.cluster.manager.settings import ManagerSettings
from penstock.model.settings import QueueSettings

SETTINGS = ManagerSettings()


class ObedientCluster:
    """Time stands still unless a test moves it."""

    def __init__(self, nodes: int = 3, zones: int = 3) -> None:
        self.view = ClusterView()
        self.now_ms = 1_000_000
        self.version = 0
        self.next_id = 1
        self.on_their_way: set[int] = set()
        """Partitions that messages are still to leave."""
        self.took_messages: set[int] = set()
        """Partitions whose primary has ever taken a message."""
        for i in range(nodes):
            self.start(f"n{i}", f"z{i % zones}")
        self.now_ms += 60_000

    # --- the store ------------------------------------------------------------------------------------------

    def put(self, key: str, entry: LayoutEntry | None) -> None:
        self.version += 1
        value = layout.encode(entry) if entry is not None else None
        self.view.apply(key, value, self.version, self.now_ms)

    def start(self, name: str, zone: str = "", load: float = 0.0) -> None:
        entry = NodeEntry(
            node=name, zone=zone, native="", peers="", started_ms=self.now_ms + self.version, load=load
        )
        self.put(layout.node_key(name), entry)

    def kill(self, name: str) -> None:
        self.put(layout.node_key(name), None)
        self.put(layout.positions_key(name), None)

    def drain(self, name: str, remove: bool = False) -> None:
        self.put(layout.drain_key(name), DrainEntry(node=name, remove=remove))

    def allow_unclean(self, partition: int, epoch: int) -> None:
        self.put(layout.unclean_key(partition), UncleanEntry(partition=partition, epoch=epoch))

    def create(self, name: str, partitions: int = 1, **settings: object) -> list[int]:
        """A queue that serves already."""
        ids = [self.next_id + i for i in range(1, partitions + 1)]
        self.next_id += partitions + 1
        chosen = msgspec.convert({"replicas": 3, "partitions": partitions, **settings}, QueueSettings)
        census = Census(seen.entry for seen in self.view.partitions.values())
        placed = place(self.view.members.places(), ids, chosen.replicas, census)
        for entry in first_entries(
            placed, queue=name, queue_id=ids[0] - 1, settings=settings_of_partition(chosen)
        ):
            self.put(
                layout.partition_key(entry.partition), msgspec.structs.replace(entry, serving=entry.epoch)
            )
        queue = QueueEntry(
            name=name, queue_id=ids[0] - 1, settings=chosen, created_ms=self.now_ms, partitions=ids
        )
        self.put(layout.queue_key(name), queue)
        self.now_ms += 5_000
        return ids

    def entry(self, partition: int) -> PartitionEntry:
        return self.view.partitions[partition].entry

    def change(self, partition: int, **changes: object) -> None:
        self.put(layout.partition_key(partition), msgspec.structs.replace(self.entry(partition), **changes))

    def change_queue(self, name: str, **changes: object) -> None:
        self.put(layout.queue_key(name), msgspec.structs.replace(self.view.queues[name].entry, **changes))

    def say(self, node: str, **positions: Position) -> None:
        """A node's word: `p7=Position(...)` is about partition 7."""
        self.put(
            layout.positions_key(node),
            PositionsEntry(
                node=node,
                started_ms=self.view.members.living[node].started_ms,
                positions={int(key[1:]): position for key, position in positions.items()},
            ),
        )

    # --- the manager and the nodes --------------------------------------------------------------------------

    def decide(self) -> list[Change]:
        return decide(self.view, self.now_ms, SETTINGS)

    def manage(self) -> list[Change]:
        """One look of the manager, whose changes are all written."""
        changes = self.decide()
        for change in changes:
            self.put(change.key, change.entry)
        return changes

    def obey(self) -> None:
        """All living nodes do what they are told: say positions, serve, catch up, hand over, drop."""
        living = self.view.members.living
        entries = [seen.entry for seen in self.view.partitions.values()]
        for name, node in living.items():
            asked = asked_of(name, entries, living)
            if asked or name in self.view.positions:
                said = {one: Position(self.entry(one).epoch, self.entry(one).serving, 1) for one in asked}
                words = PositionsEntry(node=name, started_ms=node.started_ms, positions=said)
                self.put(layout.positions_key(name), words)
        for entry in entries:
            self._obey(entry)

    def _obey(self, entry: PartitionEntry) -> None:
        living = self.view.members.living
        new = msgspec.structs.replace(entry, leaving=[node for node in entry.leaving if node not in living])
        if is_led(new, living):
            successor = living.get(new.hand_over_to or "")
            new = handed_over(new, successor) if successor is not None else new
            in_sync = [node for node in new.replicas if node in living]
            new = msgspec.structs.replace(new, serving=new.epoch, in_sync=in_sync)
            if new.abandoned and entry.partition in self.took_messages:
                new = taken_back(new)
            elif new.deleted and entry.partition not in self.on_their_way:
                new = given_up(new, "nothing is on its way any more")
        if new != entry:
            self.put(layout.partition_key(entry.partition), new)

    def settle(self, looks: int = 400) -> list[Change]:
        """Until nobody has anything to do any more; everything that the manager did."""
        done: list[Change] = []
        quiet = 0
        for _ in range(looks):
            self.now_ms += 1_200
            self.obey()
            changes = self.manage()
            done += changes
            quiet = 0 if changes else quiet + 1
            if quiet > 12:
                return done
        raise AssertionError(f"it never comes to rest: {done[-3:]}")
