"""A whole cluster as a model: nodes, two managers who follow the store late, and a hand that breaks things.

The layout, the manager's decisions and the commitment of records are the product's; disks, network and store are plain
lists. Whatever happens, what was committed must be in the log of whoever leads; and when things are well again,
everything must serve and have its replicas.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.entries import DrainEntry, PartitionEntry, QueueEntry
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.decide import decide
from penstock.cluster.manager.placement import Census, first_entries, place
from penstock.cluster.manager.settings import ManagerSettings
from penstock.model.settings import QueueSettings
from penstock.replication.primary_secondary.core.secondary import Continue, CutFirst, SendWhole, approach
from tests.cluster.model_node import Node, Record, Replica
from tests.cluster.model_store import ModelStore, UnsafeError

SETTINGS = ManagerSettings(replace_after_ms=20_000, trust_after_ms=2_000)


class ModelManager:
    """Sees the store's changes some time later, and may be killed between any two writes."""

    def __init__(self, store: ModelStore) -> None:
        self.store = store
        self.view = ClusterView()
        self.heard = 0

    def follow(self, upto: int, now_ms: int) -> None:
        for one in self.store.history[self.heard : upto]:
            self.view.apply(one.key, one.value, one.version, now_ms)
        self.heard = max(self.heard, upto)


class World:
    """Five nodes in three zones."""

    disks_lost = 0.1
    """How many restarts are with an empty disk."""

    def __init__(self, seed: int, nodes: int = 5, replication: str = "sync") -> None:
        self.random = random.Random(seed)
        self.now_ms = 1_000_000
        self.replication = replication
        self.pace = self.random.choice([2, 20])
        """How many records a replica gets at once, at most."""
        self.store = ModelStore()
        self.nodes = {f"n{i}": Node(f"n{i}", f"z{i % 3}", self.store) for i in range(nodes)}
        self.managers = [ModelManager(self.store) for _ in range(2)]
        self.committed: dict[int, list[Record]] = {}
        self.next_id = 1
        self.next_value = 0
        for node in list(self.nodes.values())[: nodes - 1]:
            node.register(self.now_ms)
        for _ in range(3):
            self.create_queue()

    # --- what users and operators do ------------------------------------------------------------------------

    def create_queue(self) -> None:
        living = [layout.decode_node(value) for _, value, _ in self.store.under(layout.NODES)]
        replicas = self.random.randint(1, min(3, len(living))) if living else 0
        if not replicas:
            return
        settings = msgspec.convert({"replicas": replicas, "replication": self.replication}, QueueSettings)
        queue_id, self.next_id = self.next_id, self.next_id + 4
        ids = list(range(queue_id + 1, queue_id + 1 + self.random.randint(1, 3)))
        name = f"q{queue_id}"
        placed = place(living, ids, replicas, Census(self.partitions()))
        for entry in first_entries(placed, queue=name, queue_id=queue_id, settings=settings):
            self.store.put(layout.partition_key(entry.partition), layout.encode(entry), 0)
        queue = QueueEntry(name=name, queue_id=queue_id, settings=settings, created_ms=0, partitions=ids)
        self.store.put(layout.queue_key(name), layout.encode(queue), 0)

    def change_queue(self, **changes: object) -> None:
        queues = self.store.under(layout.QUEUES)
        if queues:
            key, value, version = self.random.choice(queues)
            queue = msgspec.structs.replace(layout.decode_queue(value), **changes)
            self.store.put(key, layout.encode(queue), version)

    def delete_queue(self) -> None:
        """Now and then, and makes another one instead."""
        if self.random.random() < 0.1:
            for entry in self.partitions():
                if entry.serving and self.random.random() < 0.5:
                    self.store.on_their_way.setdefault(entry.partition, self.random.randint(0, 3))
            self.change_queue(state="deleting")
            self.create_queue()

    def alter_queue(self) -> None:
        if self.random.random() < 0.1:
            replicas = self.random.randint(1, 3)
            self.change_queue(
                settings=msgspec.convert(
                    {"replicas": replicas, "replication": self.replication}, QueueSettings
                )
            )

    def drain(self) -> None:
        name = self.random.choice(list(self.nodes))
        if len(self.store.under(layout.DRAINS)) < 2 and self.random.random() < 0.2:
            self.store.put(layout.drain_key(name), layout.encode(DrainEntry(node=name)), None)

    def stop_draining(self) -> None:
        for key, _, _ in self.store.under(layout.DRAINS)[:1]:
            self.store.delete(key, None)

    # --- what breaks ----------------------------------------------------------------------------------------

    def crash(self) -> None:
        if self.random.random() < 0.4:
            self.any_node().crash()

    def restart(self) -> None:
        node = self.any_node()
        if not node.up:
            # Nobody replaces a disk so fast that a manager still believes in the life before.
            is_known = all(manager.heard >= node.crashed_at for manager in self.managers)
            if self.random.random() < self.disks_lost and is_known and self.can_lose_disk_of(node):
                node.wipe()
            node.register(self.now_ms)
            self.forget_confirmations(node)

    def cut(self) -> None:
        node = self.any_node()
        if node.up and self.random.random() < 0.3:
            node.cut_off, node.isolated = True, self.random.random() < 0.5
            node.lose_lease()

    def heal(self) -> None:
        node = self.any_node()
        if node.up and node.cut_off:
            node.register(self.now_ms)

    def can_lose_disk_of(self, node: Node) -> bool:
        """Whether somebody else has everything that it has to have."""
        return all(
            any(
                other != node.name and (has := self.nodes[other].replicas.get(entry.partition)) and has.whole
                for other in entry.in_sync
            )
            for entry in self.partitions()
            if node.name in entry.in_sync
        )

    # --- what goes on ---------------------------------------------------------------------------------------

    def append(self) -> None:
        for replica, _ in self.leaders():
            primary = replica.primary
            if primary is None or not primary.takes_sends or not replica.serves or replica.hands_over:
                continue
            if self.random.random() < 0.5:
                continue
            self.next_value += 1
            replica.log.append((replica.leads, self.next_value))
            primary.appended(len(replica.log), self.now_ms)
            primary.flushed(len(replica.log))

    def replicate(self) -> None:
        for node in self.nodes.values():
            for partition, replica in list(node.replicas.items()):
                if node.up and replica.primary is not None:
                    for follower in sorted(replica.primary.followers):
                        if self.random.random() < 0.6:
                            self.send(node, self.nodes[follower], partition, replica)

    def send(self, leader: Node, follower: Node, partition: int, ours: Replica) -> None:
        theirs = follower.replicas.get(partition)
        if not follower.up or theirs is None or leader.isolated or follower.isolated or ours.primary is None:
            return
        if ours.leads < theirs.known_epoch:
            ours.primary = None
            return
        theirs.known_epoch, theirs.primary = ours.leads, None
        match approach(ours.epochs, len(ours.log), 1, theirs.epochs, len(theirs.log)):
            case Continue(previous) | CutFirst(previous):
                del theirs.log[previous:]
            case SendWhole():
                theirs.log.clear()
        theirs.log += ours.log[len(theirs.log) : len(theirs.log) + self.random.randint(0, self.pace)]
        ours.primary.confirmed(follower.name, len(theirs.log), self.now_ms)
        if len(theirs.log) >= max(ours.primary.committed, ours.begun):
            theirs.whole = True

    def forget_confirmations(self, node: Node) -> None:
        for replica, _ in self.leaders():
            if replica.primary is not None:
                replica.primary.lost(node.name)

    def turn_of_a_node(self) -> None:
        self.turn(self.any_node())

    def turn(self, node: Node) -> None:
        if node.up and not node.cut_off:
            for partition in node.turn(self.now_ms):
                log = node.replicas[partition].log
                known = self.committed.get(partition, [])
                if log[: len(known)] != known:
                    raise UnsafeError(f"{node.name} leads {partition} without what was committed")

    def turn_of_a_manager(self) -> None:
        manager = self.random.choice(self.managers)
        if self.random.random() < 0.05:
            self.managers[self.managers.index(manager)] = manager = ModelManager(self.store)
            manager.follow(len(self.store.history), self.now_ms)
        newest = len(self.store.history)
        manager.follow(self.random.randint(min(manager.heard, newest), newest), self.now_ms)
        changes = self.decide(manager.view)
        for change in changes[: self.random.randint(0, len(changes))]:
            self.write(change)

    def decide(self, view: ClusterView) -> list[Change]:
        return decide(view, self.now_ms, SETTINGS)

    def write(self, change: Change) -> None:
        value = change.value
        assert change.reason
        if value is None:
            self.store.delete(change.key, change.version)
        else:
            self.store.put(change.key, value, change.version)

    # --- time -----------------------------------------------------------------------------------------------

    def actions(self) -> list[Callable[[], None]]:
        work = [self.append, self.replicate, self.replicate, self.turn_of_a_node, self.turn_of_a_node]
        manage = [self.turn_of_a_node, self.turn_of_a_manager, self.turn_of_a_manager]
        break_things = [self.crash, self.restart, self.restart, self.cut, self.heal, self.heal]
        operate = [self.drain, self.stop_draining, self.delete_queue, self.alter_queue]
        return [*work * 4, *manage * 4, *break_things, *operate]

    def step(self) -> None:
        self.now_ms += self.random.randrange(200)
        self.random.choice(self.actions())()
        self.note_commits()

    def note_commits(self) -> None:
        if self.replication == "async":
            return
        for replica, partition in self.leaders():
            if replica.primary is None or not replica.serves:
                continue
            ours, known = replica.log[: replica.primary.committed], self.committed.get(partition, [])
            shorter = min(len(ours), len(known))
            if ours[:shorter] != known[:shorter]:
                raise UnsafeError(f"partition {partition} committed two things in one place")
            if len(ours) > len(known):
                self.committed[partition] = ours

    def any_node(self) -> Node:
        return self.random.choice(list(self.nodes.values()))

    def leaders(self) -> list[tuple[Replica, int]]:
        return [
            (replica, partition)
            for node in self.nodes.values()
            if node.up
            for partition, replica in node.replicas.items()
            if replica.primary is not None
        ]

    def partitions(self) -> list[PartitionEntry]:
        return [layout.decode_partition(value) for _, value, _ in self.store.under(layout.PARTITIONS)]

    # --- the end --------------------------------------------------------------------------------------------

    def bring_back(self) -> None:
        """Everybody lives and sees everybody; drains that stand, stand."""
        for node in self.nodes.values():
            if not node.up or node.cut_off:
                node.register(self.now_ms)
                self.forget_confirmations(node)

    def rest(self, rounds: int = 600) -> bool:
        """Lets everybody work undisturbed; whether the manager had nothing more to do for a long while."""
        self.pace = 50
        idle = 0
        for _ in range(rounds):
            self.now_ms += 400
            for node in self.nodes.values():
                self.turn(node)
            for _ in range(3):
                self.replicate()
            self.note_commits()
            self.managers[0].follow(len(self.store.history), self.now_ms)
            changes = self.decide(self.managers[0].view)
            for change in changes:
                self.write(change)
            idle = 0 if changes else idle + 1
            if idle > 60:
                return True
        return False
