"""The parts of a node, for use by its modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.backend.admin.catalogue import Catalogue
from penstock.backend.logs.member_leases import MemberLeases
from penstock.backend.logs.waiting import LogReader, ReaderRoom
from penstock.backend.node.environment import not_synchronized
from penstock.backend.node.logbook import Logbook
from penstock.backend.node.outbox import LeaseRef, Outbox
from penstock.backend.receive.bodies import BodyReader
from penstock.backend.receive.waiting import Waiter, WaitingRoom
from penstock.backend.send.held_sends import HeldSends
from penstock.backend.upkeep.captures import Captures
from penstock.backend.upkeep.freeing import Freeing
from penstock.backend.upkeep.idle_queues import IdleQueues
from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode
from penstock.model.records import SPENT_MOVED, GroupChanged, Sent, SpentMoved
from penstock.queue.decisions.decision import Decision, Granted, PendingRecord, Reply
from penstock.queue.decisions.receipts import ReceiptSeal
from penstock.queue.living_files import take_emptied
from penstock.queue.partition import Partition
from penstock.queue.ready.sorted_order import Clock
from penstock.queue.ready.weighted_turns import TurnsInUse, WeightedSet
from penstock.replication.interface import Need, ReplicationModel
from penstock.storage.errors import Damage, DamagedEntryError
from penstock.storage.store import Store
from penstock.wire.messages import Answer, Failed, QueueDescription, QueueList, SendResult
from penstock.wire.send_order import SendOrder

_TELLS_NO_MESSAGES = Failed | QueueDescription | QueueList
"""Answers that any node of a cluster may give, also without leading."""
_TELLS_READERS = Sent | GroupChanged
"""Records that a reader at the end of a retained log waits for, or must know."""


class GrantedDelivery(NamedTuple):
    """A lease that was granted and whose messages must be delivered."""

    waiter: Waiter
    granted: Granted
    at_ms: int


class GrantedGroup(NamedTuple):
    """The leases that a receiver of several queues got."""

    waiter: Waiter
    queues: WeightedSet
    granted: list[tuple[int, Granted]]
    """(queue id, lease)."""
    at_ms: int


class CheckpointsUnderWay(Protocol):
    """Checkpoints, for models that write whole states."""

    @property
    def is_under_way(self) -> bool:
        """Whether one has begun and not ended."""


@dataclass(slots=True)
class NodeParts:
    """The state that all handlers use. Owned by one thread."""

    store: Store
    catalogue: Catalogue
    logbook: Logbook
    bodies: BodyReader
    seal: ReceiptSeal
    waiting: WaitingRoom = field(default_factory=WaitingRoom)
    outbox: Outbox = field(default_factory=Outbox)
    clock: Clock = not_synchronized
    """The clock interval, for order by time."""
    held_sends: HeldSends = field(default_factory=HeldSends)
    send_order: SendOrder = field(default_factory=SendOrder)
    """The last batch of each producer, by connection: those that follow it may come."""
    """Sends that wait for that clock."""
    max_unflushed_bytes: int = 64 * limits.MEBIBYTE
    behind: set[int] = field(default_factory=set)
    """Connections that have not read what they were sent."""
    movers: set[int] = field(default_factory=set)
    """Queues with messages on their way to another, and deleted queues that are still to be removed."""
    stalled_movers: set[int] = field(default_factory=set)
    """Queues whose messages wait for a damaged queue: they are skipped until a queue is deleted."""
    doomed: set[int] = field(default_factory=set)
    """Damaged queues that were deleted as they are: they are removed with everything."""
    timed: set[int] = field(default_factory=set)
    """Queues whose next upkeep may have changed."""
    shares: TurnsInUse = field(default_factory=TurnsInUse)
    """The turns of queues that are received from together."""
    idle: IdleQueues = field(default_factory=IdleQueues)
    """When queues with an idle expiry were last used."""
    cold_deliveries: list[tuple[list[int], GrantedDelivery | GrantedGroup]] = field(default_factory=list)
    """(positions, delivery): what a helper thread must read before it can be delivered."""
    emptied: set[tuple[int, int]] = field(default_factory=set)
    """(queue, file): files in which nothing of the queue lives any more."""
    to_report: set[int] = field(default_factory=set)
    """Queues with rows about their messages that may have to be reported."""
    clients: dict[int, str] = field(default_factory=dict)
    """The names that clients gave themselves, by connection."""
    readers: ReaderRoom = field(default_factory=ReaderRoom)
    """The readers that wait on retained logs."""
    members: MemberLeases = field(default_factory=MemberLeases)
    """Until when members of groups of readers are taken to be alive."""
    captures: Captures = field(default_factory=Captures)
    """States that are being captured, for snapshots and for replicas."""
    freeing: Freeing = field(default_factory=Freeing)
    """States that are no longer used."""
    connections: dict[int, bool] = field(default_factory=dict)
    """Open connections, and whether each has sent its hello."""
    now_ms: int = 0
    """The current time of the node."""
    model: ReplicationModel = field(init=False)
    """How partitions are replicated, if they are."""
    checkpointer: CheckpointsUnderWay = field(init=False)

    def write(self, partition: Partition, decided: Sequence[PendingRecord]) -> None:
        """Appends and applies, and notes which queues must be checked because of it.

        Raises if the journal has no room. Records before the failed one are written then, and are noted too: otherwise
        messages that began to move would wait for a mover that does not know of them.
        """
        if not decided:
            return
        partition_id = partition.partition_id
        try:
            if partition.settings.max_receives is not None:
                decided = self._readable(partition_id, decided)
            self.logbook.write(partition, decided)
        finally:
            self.timed.add(partition_id)
            if partition.moves:
                self.movers.add(partition_id)
            if partition.lifecycle is not None:
                self.to_report.add(partition_id)
            self.take_leavings(partition)
            self.waiting.wake(partition_id)
            if self.readers.is_awaited(partition_id) and any(
                isinstance(row.record, _TELLS_READERS) for row in decided
            ):
                self.readers.wake(partition_id)

    def take_leavings(self, partition: Partition) -> None:
        """Takes what records made superfluous: files, and tables that are freed over many turns."""
        if partition.table.emptied or (partition.log is not None and partition.log.emptied):
            self.emptied.update((partition.partition_id, file) for file in take_emptied(partition))
        if partition.discarded:
            self.freeing.add(partition, partition.discarded)
            partition.discarded = []

    def _readable(self, partition_id: int, decided: Sequence[PendingRecord]) -> Sequence[PendingRecord]:
        """The records in a form for replicas of an earlier version, if there are any.

        They get the move of spent messages as a plain move of leased ones, which ends the lease. They do not learn that
        the messages came back before, when they were first received, and the consumer's error.
        """
        if not any(isinstance(row.record, SpentMoved) for row in decided):
            return decided
        if self.model.understood(partition_id, SPENT_MOVED):
            return decided
        return [
            PendingRecord(row.record.started) if isinstance(row.record, SpentMoved) else row
            for row in decided
        ]

    def fence(self, partition_id: int, damaged: DamagedEntryError) -> None:
        """Stored data of the queue differs from what was written: it is not served until it is repaired."""
        self.catalogue.fence(partition_id, str(damaged))
        self.store.fence(Damage(partition_id, damaged.file, damaged.offset, damaged.reason))
        partition = self.catalogue.partitions.get(partition_id)
        name = repr(partition.name) if partition is not None else str(partition_id)
        for waiter in self.leave_queue(partition_id):
            failed = Failed(ErrorCode.QUEUE_DAMAGED, f"queue {name} is fenced: {damaged}")
            self.answer(waiter.connection, waiter.request_id, failed)
        self.model.damaged(partition_id)

    def leave_queue(self, partition_id: int) -> list[Waiter | LogReader]:
        """Removes and returns all receivers that wait on the queue."""
        self.members.forget_queue(partition_id)
        return [*self.waiting.leave_queue(partition_id), *self.readers.leave_queue(partition_id)]

    def unpark(self, connection: int) -> None:
        """The connection may be given more."""
        self.waiting.unpark(connection)
        self.readers.unpark(connection)

    def congested(self) -> bool:
        """Whether so much waits for the disk that no more input is accepted."""
        return self.store.unflushed_bytes > self.max_unflushed_bytes or self.store.congested

    def carry_out(self, partition: Partition, decision: Decision[Reply]) -> Reply:
        """Writes the records of a decision, all or none, and returns its reply."""
        if len(decision.records) > 1:
            self.logbook.check_room(partition, decision.records)
        self.write(partition, decision.records)
        return decision.reply

    def may_move(self, partition: Partition) -> bool:
        """Whether the dead-letter queue that the settings name is there."""
        target = partition.settings.dead_letter_queue
        return target is not None and self.has_queue(target)

    def has_queue(self, name: str) -> bool:
        """Whether there is a queue of that name, here or elsewhere in the cluster."""
        return self.model.incarnation_of(name) is not None

    def consumer(self, partition: Partition, waiter: Waiter) -> str:
        """The name of the consumer, if it is needed."""
        if partition.lifecycle is None:
            return ""
        name = waiter.consumer or self.clients.get(waiter.connection, "")
        return name[: limits.CONSUMER_NAME_CHARACTERS]

    def may_deliver(self, connection: int) -> bool:
        """Whether the connection may get more messages: unread messages must not fill the memory."""
        return connection not in self.behind and self.outbox.body_bytes(connection) < limits.UNREAD_BYTES

    def answer(
        self,
        connection: int,
        request_id: int,
        answer: Answer,
        body: Sequence[Buffer] = (),
        leases: Sequence[LeaseRef] = (),
        stamp_us: int = 0,
        about: int | Sequence[int] = (),
        earlier: Sequence[Need] = (),
    ) -> None:
        """Answers once everything appended so far is on disk, and time is past the stamp, if there is one.

        In a cluster, what the queues have that the answer is about must be committed as well. `earlier`: what was to be committed in
        turns before, for a request that took several.
        """
        needs: Sequence[Need] = ()
        if about:
            needs = self.model.needs(about, served_only=isinstance(answer, _TELLS_NO_MESSAGES))
        if earlier:
            needs = [*earlier, *needs]
        self.outbox.put(
            self.store.appended_position,
            connection,
            request_id,
            answer,
            body,
            leases,
            stamp_us,
            needs,
            needs_copies=bool(needs) and isinstance(answer, SendResult),
        )
