"""Three nodes in one process over simulated disks, a network that loses connections, and a store of entries.

Everything happens when the seeded dice or the test say so: flushes and jobs end late, frames wait in pipes, the layout is
heard of late, machines lose their power. The manager is a few lines; the nodes are the product.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

import msgspec

from penstock.backend.node.environment import Environment
from penstock.cluster.layout.deletion import marked
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.model.batch import Buffer
from penstock.model.records import KINDS
from penstock.model.settings import QueueSettings
from penstock.replication.cluster_interface import Proposal
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.flush import Flush
from penstock.storage.identity import Identity
from penstock.storage.job import Job
from penstock.storage.options import StorageOptions
from penstock.storage.store import Store
from penstock.wire import messages
from penstock.wire.frames import Frame, FrameReader

START_MS = 1_700_000_000_000
SECRET = b"cluster secret of 32 bytes......"
OPTIONS = StorageOptions(
    journal_file_bytes=256 * 1024,
    entry_bytes_max=128 * 1024,
    free_bytes_min=0,
    segment_bytes=128 * 1024,
    checkpoint_journal_bytes=256 * 1024,
    cache_bytes=64 * 1024,
    read_ahead_bytes=16 * 1024,
)
NAMES = ("a", "b", "c")
LEASE_MS = 2_000
"""Every node that runs has renewed its lease, so that `async` queues are served."""


class Machine:
    """One node, its disk, and what its helper threads are at."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.disk = SimulatedDisk(random.Random(f"{cluster.seed} {name}"))
        self.node: ReplicatedNode | None = None
        self.started_ms = 0
        self.flush: Flush | None = None
        self.jobs: deque[Job] = deque()
        self.readers: dict[str, FrameReader] = {}
        self.client = FrameReader()
        self.answers: dict[int, messages.Answer] = {}
        self.bodies: dict[int, bytes] = {}
        self.starts = 0
        self.heard: deque[tuple[PartitionEntry, int]] = deque()
        self.named: dict[str, int] = {}
        """By name: the queue that was made under it, as the node has heard."""
        self.proposals: deque[Proposal] = deque()

    def start(self) -> None:
        """A process begins on what the disk has."""
        self.starts += 1
        cluster = self.cluster
        self.started_ms = cluster.now_ms + self.starts
        store = Store.open(self.disk, OPTIONS, Identity(f"directory of {self.name}", b"s" * 32))
        environment = Environment("0", "/simulated", lambda: (0.0, 0))
        self.node = ReplicatedNode(
            store, environment, cluster.now_ms, name=self.name, secret=SECRET, started_ms=self.started_ms
        )
        self.flush, self.jobs = None, deque()
        self.client, self.answers, self.bodies = FrameReader(), {}, {}
        self.proposals = deque()
        self.node.connected(1)
        self.heard, self.named = deque(cluster.entries.values()), {}
        self.request(messages.Hello([1], "test"))
        cluster.tell_nodes()

    def crash(self, *, power: bool = True) -> None:
        """The machine loses its power, or the process dies."""
        if self.node is None:
            return
        if self.flush is not None and self.cluster.random.random() < 0.5:
            self.flush.run()
        self.node = None
        self.disk = self.disk.crash() if power else self.disk.reopen()
        for other in NAMES:
            self.cluster.cut(self.name, other)
        self.cluster.tell_nodes()

    # -- the layout ------------------------------------------------------------------------------------------

    def queue_made(self, entry: PartitionEntry) -> None:
        """The node hears that a queue has been made."""
        assert self.node is not None
        self.named[entry.queue] = entry.queue_id
        self.node.replication.queue_named(entry.queue, entry.queue_id, self.cluster.now_ms)

    def queue_deleted(self, entry: PartitionEntry) -> None:
        """The node hears that a queue is being deleted."""
        assert self.node is not None
        if self.named.get(entry.queue) == entry.queue_id:
            del self.named[entry.queue]
            self.node.replication.queue_named(entry.queue, None, self.cluster.now_ms)

    # -- turns -----------------------------------------------------------------------------------------------

    def request(self, request: messages.Request, body: Buffer = b"") -> int:
        """Hands a request over; its answer comes into `answers` some time."""
        assert self.node is not None
        request_id = self.cluster.next_request()
        head = memoryview(messages.encode_message(request))
        self.node.handle(1, Frame(request_id, head, memoryview(body)), self.cluster.now_ms)
        return request_id

    def turn(self, *, work: float = 1.0) -> None:
        """One pump; helper threads get on with the given likelihood."""
        node, dice, now_ms = self.node, self.cluster.random, self.cluster.now_ms
        if node is None:
            return
        node.replication.lease_renewed(now_ms + LEASE_MS, now_ms)
        wakeup = node.next_wakeup_ms()
        if wakeup is not None and wakeup <= now_ms:
            node.tick(now_ms)
        if self.flush is None:
            self.flush = node.take_flush()
        self._write(node)
        self.jobs.extend(node.take_jobs())
        if self.flush is not None and dice.random() < work:
            flush, self.flush = self.flush, None
            flush.run()
            node.flushed(flush, now_ms)
        if self.jobs and dice.random() < work:
            job = self.jobs.popleft()
            job.run()
            node.job_done(job, now_ms)
        self.proposals.extend(node.replication.take_proposals(now_ms))
        self._write(node)

    def _write(self, node: ReplicatedNode) -> None:
        for other, buffers in node.replication.take_peer_output():
            self.cluster.pipes[self.name, other].append(b"".join(buffers))
        for _, buffers in node.take_output():
            for frame in self.client.feed(b"".join(buffers)):
                self.answers[frame.request_id] = messages.decode_answer(frame.head)
                self.bodies[frame.request_id] = bytes(frame.body)


class Cluster:
    """Nodes, pipes between them, and the store."""

    def __init__(self, seed: int = 1, names: Sequence[str] = NAMES) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now_ms = START_MS
        self.entries: dict[int, tuple[PartitionEntry, int]] = {}
        self.unmade: set[str] = set()
        """Queues of which the store has the partitions, and not the queue."""
        self.version = 1
        self._request = 0
        self.pipes: dict[tuple[str, str], deque[bytes]] = {}
        self.parted: set[frozenset[str]] = set()
        """Pairs that cannot reach each other."""
        self.unreadable: set[tuple[str, int]] = set()
        """Nodes, and partitions whose entries they cannot read."""
        self.records: dict[str, int] = {}
        """Nodes of other versions: which kinds of records they read."""
        self.machines = {name: Machine(self, name) for name in names}
        for machine in self.machines.values():
            machine.start()

    def add(self, name: str, disk: SimulatedDisk) -> Machine:
        """One more machine, with what is on its disk; it is not started yet."""
        machine = self.machines[name] = Machine(self, name)
        machine.disk = disk
        return machine

    def next_request(self) -> int:
        self._request += 1
        return self._request

    # -- the store -------------------------------------------------------------------------------------------

    def put(self, entry: PartitionEntry) -> None:
        """Writes an entry; nodes hear of it in their own time."""
        self.version += 1
        self.entries[entry.partition] = (entry, self.version)
        for machine in self.machines.values():
            machine.heard.append((entry, self.version))

    def entry(self, partition: int = 1) -> PartitionEntry:
        return self.entries[partition][0]

    def tell_nodes(self) -> None:
        """Who lives."""
        living = {
            name: NodeEntry(
                node=name,
                native="",
                peers="",
                started_ms=machine.started_ms,
                records=self.records.get(name, KINDS),
            )
            for name, machine in self.machines.items()
            if machine.node is not None
        }
        for machine in self.machines.values():
            if machine.node is not None:
                machine.node.replication.apply_nodes(living, self.now_ms)

    def create(
        self, name: str = "q", partition: int = 1, nodes: Sequence[str] = NAMES, **settings: object
    ) -> None:
        """A queue of one partition, led by the first of the nodes."""
        chosen = QueueSettings(replicas=len(nodes), **settings)  # type: ignore[arg-type]  # as the caller names them
        self.create_partition(name, partition, nodes, chosen, queue_id=partition, ordinal=0)

    def create_partition(
        self,
        name: str,
        partition: int,
        nodes: Sequence[str],
        settings: QueueSettings,
        *,
        queue_id: int,
        ordinal: int,
    ) -> None:
        """One partition of a queue, led by the first of the nodes."""
        self.put(
            PartitionEntry(
                partition=partition,
                queue_id=queue_id,
                queue=name,
                ordinal=ordinal,
                settings=settings,
                epoch=1,
                primary=nodes[0],
                primary_started_ms=self.machines[nodes[0]].started_ms,
                replicas=list(nodes),
                in_sync=list(nodes),
            )
        )

    def delete(self, partition: int = 1) -> None:
        """The queue is deleted: what a front end, or the manager, writes into the entry of its partition."""
        self.put(marked(self.entry(partition)))

    def holders(self, partition: int) -> list[str]:
        """The nodes that have anything of a partition."""
        return [
            name
            for name, machine in self.machines.items()
            if machine.node is not None
            and partition in machine.node.replication.state.parts.catalogue.partitions
        ]

    def elect(self, partition: int = 1, leader: str | None = None) -> bool:
        """What a manager does whose partition has no primary: one of those in sync, with the longest log, leads."""
        entry = self.entry(partition)
        fit = {}
        for name in entry.in_sync:
            node = self.machines[name].node
            position = node.replication.positions([partition]).get(partition) if node is not None else None
            if position is not None and position.fit:
                fit[name] = (position.log_epoch, position.last)
        if not fit:
            return False
        chosen = leader if leader in fit else max(fit, key=lambda name: fit[name])
        self.put(
            msgspec.structs.replace(
                entry,
                epoch=entry.epoch + 1,
                primary=chosen,
                primary_started_ms=self.machines[chosen].started_ms,
                in_sync=[name for name in entry.in_sync if name in fit],
                hand_over_to=None,
            )
        )
        return True

    def needs_election(self, partition: int = 1) -> bool:
        entry = self.entry(partition)
        if not entry.replicas:
            return False
        machine = self.machines[entry.primary or "a"]
        if machine.node is None or entry.primary_started_ms != machine.started_ms:
            return True
        position = machine.node.replication.positions([]).get(partition)
        return position is not None and not position.fit

    # -- the network -----------------------------------------------------------------------------------------

    def cut(self, one: str, other: str) -> None:
        """The connection between two nodes breaks; what was under way is lost."""
        for pair in ((one, other), (other, one)):
            self.pipes.pop(pair, None)
            node = self.machines[pair[0]].node
            self.machines[pair[0]].readers.pop(pair[1], None)
            if node is not None:
                node.replication.peer_disconnected(pair[1], self.now_ms)

    def connect(self) -> None:
        """Connects whoever lives and can reach each other."""
        for one in self.machines:
            for other in self.machines:
                if one < other and (one, other) not in self.pipes:
                    first, second = self.machines[one], self.machines[other]
                    if first.node and second.node and frozenset((one, other)) not in self.parted:
                        self.pipes[one, other], self.pipes[other, one] = deque(), deque()
                        first.readers[other], second.readers[one] = FrameReader(), FrameReader()
                        first.node.replication.peer_connected(other, self.now_ms)
                        second.node.replication.peer_connected(one, self.now_ms)

    def deliver(self, pair: tuple[str, str], most: int = 10**9) -> None:
        """Some of what is in a pipe arrives."""
        pipe, machine = self.pipes.get(pair), self.machines[pair[1]]
        while pipe and most and machine.node is not None:
            most -= 1
            for frame in machine.readers[pair[0]].feed(pipe.popleft()):
                machine.node.replication.peer_frame(pair[0], frame, self.now_ms)

    def hear(self, machine: Machine, most: int = 10**9) -> None:
        """A node hears of some changes of the layout."""
        while machine.heard and most and machine.node is not None:
            most -= 1
            entry, version = machine.heard.popleft()
            if (machine.name, entry.partition) in self.unreadable:
                machine.node.replication.partition_gone(entry.partition, self.now_ms, unreadable=True)
                continue
            if entry.retired or entry.deleted:  # the entry of its queue said so before
                machine.queue_deleted(entry)
            elif entry.queue not in self.unmade:
                machine.queue_made(entry)
            machine.node.replication.apply_layout([(entry, version)], self.now_ms)

    def propose(self, machine: Machine, *, lost: float = 0.0) -> None:
        """The store decides about what a node wants; its answer may be lost, before or after."""
        while machine.proposals and machine.node is not None:
            wanted = machine.proposals.popleft()
            partition = wanted.entry.partition
            if self.random.random() < lost:
                machine.node.replication.proposal_failed(partition, self.now_ms)
                continue
            if self.entries[partition][1] == wanted.version:
                self.put(wanted.entry)
            if self.random.random() < lost:
                machine.node.replication.proposal_failed(partition, self.now_ms)

    # -- steps -----------------------------------------------------------------------------------------------

    def settle(self, milliseconds: int = 3_000, step_ms: int = 20) -> None:
        """Time passes in which everything works."""
        end_ms = self.now_ms + milliseconds
        while self.now_ms < end_ms:
            self.now_ms += step_ms
            self.step()

    def step(self) -> None:
        """Everybody gets on with everything."""
        self.connect()
        for _ in range(4):
            for machine in self.machines.values():
                self.hear(machine)
                machine.turn()
                self.propose(machine)
            for pair in list(self.pipes):
                self.deliver(pair)
        for partition, (entry, _) in list(self.entries.items()):
            if entry.replicas and self.needs_election(partition):
                self.elect(partition)

    @property
    def leader(self) -> Machine:
        """Who serves the first partition."""
        return self.serving()

    def serving(self, partition: int = 1) -> Machine:
        entry = self.entry(partition)
        assert entry.primary is not None
        assert entry.serving == entry.epoch, entry
        return self.machines[entry.primary]

    def ask(self, request: messages.Request, body: Buffer = b"", partition: int = 1) -> messages.Answer:
        """Asks the primary and lets everything work until it has answered."""
        machine = self.serving(partition)
        number = machine.request(request, body)
        for attempt in range(400):
            if number in machine.answers:
                return machine.answers.pop(number)
            self.now_ms += 1 if attempt < 200 else 20
            self.step()
        raise AssertionError(f"no answer to {request}")
