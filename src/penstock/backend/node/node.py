"""The node: takes frames, time and finished work; returns flushes, jobs and answers. It owns no thread and no clock.

Its driver (the runtime, or the simulation) calls `handle` for every frame of a turn, then `take_flush`, `take_jobs` and
`take_output` once. All requests of the turn share one flush: this is group commit.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.backend.admin.catalogue import Catalogue
from penstock.backend.logs.reading import LogReads
from penstock.backend.node.alone import Alone
from penstock.backend.node.clock_handler import ClockHandler
from penstock.backend.node.environment import Environment
from penstock.backend.node.opening import open_node
from penstock.backend.node.outbox import HandedAnswer, HandOver
from penstock.backend.node.parts import GrantedDelivery, GrantedGroup, NodeParts
from penstock.backend.node.request_handlers import RequestHandlers, queue_of
from penstock.backend.receive import group_receiving, traffic
from penstock.backend.receive.bodies import ColdReadError
from penstock.backend.receive.settlements import Settlements
from penstock.backend.send import sends
from penstock.backend.upkeep import idle_expiry
from penstock.backend.upkeep.checkpoints import Checkpointer
from penstock.backend.upkeep.keeping_up import keep_up
from penstock.backend.upkeep.upkeep_times import UpkeepTimes, earliest
from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions import upkeep
from penstock.replication.interface import ReplicationModel
from penstock.storage.errors import DamagedEntryError
from penstock.storage.flush import Flush
from penstock.storage.job import Job
from penstock.storage.store import Store
from penstock.wire import messages
from penstock.wire.frames import Frame
from penstock.wire.messages import request_of

__all__ = ["Environment", "Node"]

_MOVES_PER_TURN = 4
_NOTHING = memoryview(b"")


class Node:
    """One node over one store."""

    def __init__(
        self,
        store: Store,
        environment: Environment,
        now_ms: int,
        max_unflushed_bytes: int = 64 * limits.MEBIBYTE,
        *,
        make_model: Callable[[NodeParts], ReplicationModel] = Alone,
        cluster_secret: bytes | None = None,
    ) -> None:
        self._store = store
        self._parts, self.opening_report = open_node(store, now_ms, make_model, cluster_secret)
        self._model = self._parts.model
        self._parts.max_unflushed_bytes = max_unflushed_bytes
        self._parts.clock = environment.clock
        self._checkpointer = self._parts.checkpointer = Checkpointer(self._parts)
        self._log_reads = LogReads(self._parts)
        self._clock_handler = ClockHandler(
            environment.clock, environment.clock_source, environment.clock_drift_ppm, environment.process
        )
        self._connections = self._parts.connections
        self._settlements = Settlements(self._parts)
        """Long requests about receipts that are not done."""
        self._handlers = RequestHandlers(
            self._parts,
            environment,
            self._log_reads,
            self._clock_handler,
            self._settlements,
            self._connections,
            store.identity.node,
            now_ms,
        )
        self._upkeep = UpkeepTimes()
        self._jobs: list[Job] = []
        self._cold_deliveries: dict[Job, GrantedDelivery | GrantedGroup] = {}
        self._cold_requests: dict[Job, tuple[int, int, messages.Peek | messages.Redrive]] = {}
        self._cold_moves: dict[Job, int] = {}
        self.next_wakeup_ms()  # work that became due while the node was down is done before the first request

    @property
    def last_stamp_us(self) -> int:
        """The last time on record, which a clock of the node's own must not go back behind."""
        return self._parts.catalogue.last_stamp_us()

    @property
    def catalogue(self) -> Catalogue:
        """The queues of this node."""
        return self._parts.catalogue

    # -- connections and requests ----------------------------------------------------------------------------

    def connected(self, connection: int, hand_over: HandOver | None = None) -> None:
        """A client has connected; `hand_over`: how one in this process takes its answers."""
        self._connections[connection] = False
        if hand_over is not None:
            self._parts.outbox.in_process[connection] = hand_over

    def disconnected(self, connection: int, now_ms: int) -> None:
        """A client is gone."""
        self._parts.now_ms = now_ms
        self._settlements.finish(connection, now_ms)
        self._connections.pop(connection, None)
        self._parts.behind.discard(connection)
        self._parts.clients.pop(connection, None)
        self._parts.waiting.leave_connection(connection)
        self._parts.held_sends.leave_connection(connection)
        self._parts.readers.leave_connection(connection)

    def behind(self, connection: int) -> None:
        """The client does not read its messages: it gets no more for now."""
        self._parts.behind.add(connection)

    def caught_up(self, connection: int) -> None:
        """The client has read what it was sent."""
        self._parts.behind.discard(connection)
        self._parts.unpark(connection)

    def handle(self, connection: int, frame: Frame, now_ms: int) -> None:
        """Handles one request; every error becomes an answer."""
        self._parts.now_ms = now_ms
        self._model.request_arrives(now_ms)
        if connection not in self._connections:
            return
        request: messages.Request | None = None
        due_ms = self._upkeep.next_ms()
        if due_ms is not None and due_ms <= now_ms:
            self.tick(now_ms)  # no request may see what should have ended by now
        if self._settlements:
            self._settlements.finish(connection, now_ms)
        try:
            request = request_of(frame)
            if self._parts.idle:
                idle_expiry.note_use(self._parts, request, now_ms)
            self._handlers.take(connection, frame.request_id, request, frame.body, now_ms)
        except PenstockError as error:
            failed = messages.Failed(error.code, error.message)
            self._parts.answer(connection, frame.request_id, failed, about=queue_of(request))
        except ColdReadError as cold:
            assert isinstance(request, messages.Peek | messages.Redrive)
            self._cold_requests[self._read(cold.positions)] = (connection, frame.request_id, request)
        except DamagedEntryError as damaged:
            if partition_id := queue_of(request):
                self._parts.fence(partition_id, damaged)
            failed = messages.Failed(ErrorCode.QUEUE_DAMAGED, f"stored data is damaged: {damaged}")
            self._parts.answer(connection, frame.request_id, failed)

    # -- time ------------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Does what is due by now."""
        self._parts.now_ms = now_ms
        parts = self._parts
        self._model.tick(now_ms)
        self._store.tick(now_ms)
        for waiter in parts.waiting.timed_out(now_ms):
            parts.answer(waiter.connection, waiter.request_id, traffic.nothing_for(waiter))
        self._log_reads.tick(now_ms)
        for partition_id in self._upkeep.take_due(now_ms):
            partition = parts.catalogue.partitions.get(partition_id)
            if partition is not None and not parts.catalogue.is_closed(partition_id):
                keep_up(parts, self._upkeep, partition, now_ms)
        idle_expiry.delete_idle(parts, now_ms)
        sends.pass_time(parts, self._connections, now_ms)

    def next_wakeup_ms(self) -> int | None:
        """When `tick` has something to do next."""
        parts = self._parts
        for partition_id in parts.timed:
            partition = parts.catalogue.partitions.get(partition_id)
            if partition is None or partition_id in parts.catalogue.deleting:
                self._upkeep.forget(partition_id)
                parts.idle.forget(partition_id)
                continue
            if parts.catalogue.is_closed(partition_id):
                continue
            parts.idle.watch(partition_id, partition.settings.idle_expiry_ms, self._parts.now_ms)
            if (due_ms := upkeep.next_due(partition, self._parts.now_ms, parts.clock)) is not None:
                self._upkeep.ask(partition_id, due_ms)
        parts.timed.clear()
        if parts.waiting.deserted or parts.readers.deserted:
            idle_expiry.note_departures(parts, self._parts.now_ms)
        return earliest(
            parts.waiting.next_ms(),
            self._log_reads.next_ms(),
            self._store.next_wakeup_ms(),
            self._upkeep.next_ms(),
            parts.idle.next_ms(),
            sends.next_ms(parts, self._parts.now_ms),
            self._model.next_wakeup_ms(),
        )

    # -- the disk --------------------------------------------------------------------------------------------

    def take_flush(self) -> Flush | None:
        """Ends the turn: serves waiting receivers, continues moves, and hands out everything appended to be written."""
        self._serve_waiting()
        self._log_reads.serve_waiting(self._parts.now_ms)
        self._settlements.go_on(self._parts.now_ms)
        self._move()
        self._model.end_turn(self._parts.now_ms)
        if not self._store.unflushed_bytes:
            self._commit()
        return self._store.take_flush()

    def flushed(self, flush: Flush, now_ms: int) -> None:
        """The flush has ended; answers that waited for it may leave. Raises if the disk failed."""
        self._parts.now_ms = now_ms
        self._store.flushed(flush)
        self._commit()

    def _commit(self) -> None:
        parts = self._parts
        self._model.flushed(parts.now_ms)
        committed = self._store.committed_position
        parts.outbox.committed(committed, self._connections)
        if parts.outbox.stamped:
            sends.answer_past(parts, self._connections)
        for partition_id, lease, runs in parts.outbox.undelivered:
            try:
                partition = parts.catalogue.usable(partition_id)
                parts.write(partition, settling.undelivered(partition, lease, runs, self._parts.now_ms))
            except PenstockError:  # gone, fenced, or no room in the journal: the lease ends by itself
                continue
        parts.outbox.undelivered.clear()

    def take_jobs(self) -> list[Job]:
        """Work for the helper thread."""
        self._checkpointer.drop_emptied()
        self._parts.captures.step()
        self._parts.freeing.step()
        step = self._checkpointer.step(self._parts.now_ms)
        jobs = [*self._jobs, *self._store.take_jobs(), *self._log_reads.take_jobs()]
        self._jobs = []
        if step is not None:
            jobs.append(step)
        return jobs + self._model.take_jobs()

    def job_done(self, job: Job, now_ms: int) -> None:
        """A job has ended, well or not."""
        self._parts.now_ms = now_ms
        self._store.job_done(job)
        if self._checkpointer.job_done(job, now_ms) or self._log_reads.job_done(job):
            pass
        elif job in self._cold_deliveries:
            delivery = self._cold_deliveries.pop(job)
            if isinstance(delivery, GrantedGroup):
                group_receiving.deliver(self._parts, delivery, block=True)
            else:
                traffic.deliver(self._parts, delivery, block=True)
        elif job in self._cold_moves:
            self._parts.movers.add(self._cold_moves.pop(job))
        elif job in self._cold_requests:
            self._ask_again(*self._cold_requests.pop(job))
        self._model.job_done(job, now_ms)

    def _ask_again(self, connection: int, request_id: int, request: messages.Peek | messages.Redrive) -> None:
        from_memory = Frame(request_id, _NOTHING, _NOTHING, request)
        self.handle(connection, from_memory, self._parts.now_ms)

    def _serve_waiting(self) -> None:
        parts = self._parts
        while parts.waiting.awake:
            partition_id = parts.waiting.awake.pop()
            partition = parts.catalogue.partitions.get(partition_id)
            if (
                partition is None
                or parts.catalogue.is_closed(partition_id)
                or partition_id in parts.catalogue.deleting
            ):
                continue
            traffic.serve_line(parts, partition, self._parts.now_ms)
            parts.waiting.awake.discard(partition_id)
        for positions, delivery in parts.cold_deliveries:
            self._cold_deliveries[self._read(positions)] = delivery
        parts.cold_deliveries.clear()

    def _move(self) -> None:
        for partition_id in list(self._parts.movers)[:_MOVES_PER_TURN]:
            try:
                self._model.move_some(partition_id, self._parts.now_ms)
            except ColdReadError as cold:
                self._parts.movers.discard(partition_id)
                self._cold_moves[self._read(cold.positions)] = partition_id
            except DamagedEntryError as damaged:
                self._parts.fence(partition_id, damaged)
            except PenstockError:  # no room in the journal: tried again in the next turn
                return

    def _read(self, positions: list[int]) -> Job:
        job = self._store.read_job(positions)
        self._jobs.append(job)
        return job

    def take_output(self) -> list[tuple[int, list[Buffer]]]:
        """The bytes that may be written to connections now."""
        outbox = self._parts.outbox
        output = outbox.take()
        for connection, _ in output:
            self._parts.unpark(connection)
        for answer in self._clock_handler.take(self._connections):
            outbox.put_now(*answer)
        return output + outbox.take()

    def take_handed(self) -> list[tuple[HandOver, list[HandedAnswer]]]:
        """The same for clients in this process, and how they take it."""
        outbox = self._parts.outbox
        handed = outbox.take_handed()
        for connection, _ in handed:
            self._parts.unpark(connection)
        return [(outbox.in_process[connection], answers) for connection, answers in handed]

    def congested(self) -> bool:
        """Whether to stop reading requests until the disk has caught up."""
        return self._parts.congested()

    def has_more(self) -> bool:
        """Whether another turn is wanted though nothing arrives."""
        parts = self._parts
        if parts.movers or parts.waiting.awake or parts.readers.awake or self._settlements:
            return True
        return bool(parts.captures or parts.freeing) or self._checkpointer.has_more or self._model.has_more()

    def close(self, now_ms: int) -> None:
        """Last words: everything appended is on disk and marked as closed well."""
        self._model.close(now_ms)
        self._store.close()
