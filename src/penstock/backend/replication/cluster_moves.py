"""Messages on their way to a queue whose partition may be led by another node.

Each step waits until the one before is committed on the replicas of its partition:

    source   MoveStarted
    target   Sent, with its origin (remembered, so that the same messages arrive once, however often they are sent)
    source   MoveFinished
    target   OriginsForgotten

Whoever fails in between, the message is in exactly one queue, or on its way with the target knowing whether it arrived.
Where the target is deleted meanwhile nobody knows that any more. What had arrived went with it, so no queue that lives has the
message twice if it goes elsewhere: back to where it was, or to the queue that has the name now (`model/move_target.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.backend.bodies import StoredSlice
from penstock.backend.moves import first_messages, origin_of, slices_in_memory
from penstock.backend.replication.state import ClusterState
from penstock.cluster.layout import PartitionEntry
from penstock.model.batch import Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.move_target import MoveTarget, target_of
from penstock.model.origin import Reason
from penstock.model.runs import Runs
from penstock.queue import moving
from penstock.queue.partition import Partition
from penstock.wire.peer_messages import MovedIn, MoveDone, MoveIn

RETRY_MS = 200
ANSWER_MS = 3_000
"""A target that says nothing for so long is asked again; it may have been deposed meanwhile."""
SETTING_OUT = 0
"""No request has this number: among those under way it says that more of them are to come."""


@dataclass(slots=True, eq=False)
class Journey:
    """Some messages of one partition on their way."""

    source: int
    target: int
    runs: Runs
    since_ms: int
    under_way: set[int] = field(default_factory=set)
    """Numbers of the requests that were not answered yet."""


class ClusterMoves:
    """One journey at a time for each partition that messages leave."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._journeys: dict[int, Journey | None] = {}
        """By source; None: it waits until the start of the move is committed."""
        self._requests: dict[int, Journey] = {}
        self._next_number = 1
        self._homeless: set[int] = set()
        """Sources whose target is not there yet."""
        self._retries: dict[int, int] = {}
        """Source → when to try again."""

    # -- the source ------------------------------------------------------------------------------------------

    def move_some(self, queue_id: int, now_ms: int) -> None:
        """The next step of the moves out of a partition; raises `ColdReadError` when bodies must be read first."""
        state = self._state
        state.parts.movers.discard(queue_id)  # it comes back when there is something to do
        partition, led = state.parts.catalogue.partitions.get(queue_id), state.led.get(queue_id)
        if partition is None or led is None or not partition.moves or queue_id in self._journeys:
            return
        if not state.serves(queue_id):
            return
        if led.primary.committed < partition.index:
            self._journeys[queue_id] = None

            def committed() -> None:
                self._journeys.pop(queue_id, None)
                state.parts.movers.add(queue_id)

            led.when_committed(partition.index, committed)
            return
        (target, reason), runs = next(iter(partition.moves.items()))
        self._set_out(partition, target_of(target), reason, first_messages(runs), now_ms)

    def _set_out(self, source: Partition, aim: MoveTarget, reason: Reason, runs: Runs, now_ms: int) -> None:
        parts, known = self._state.parts, self._state.layout.get(source.queue_id)
        ordinal = known.entry.ordinal if known is not None else 0
        target = self._state.layout.find(aim.name, ordinal)
        if target is not None and not aim.is_meant(target.queue_id):
            target = None  # it was deleted; what has its name now is another queue
        if target is None and reason == "late":
            self._homeless.add(source.queue_id)  # until somebody has made the queue for late messages
            return
        if target is None and reason != "redrive":
            parts.write(source, moving.abandon_move(source, runs, now_ms))
            return
        slices = slices_in_memory(parts, source, runs)
        runs = [(piece.first, piece.messages) for piece in slices]
        if target is None:  # a dead letter whose way back is gone stays where it is, and says so
            try:
                self._state.led[source.queue_id].check_numbers(source)
            except PenstockError:
                self._retries[source.queue_id] = now_ms + RETRY_MS
                return
            for piece in slices:
                origin = origin_of(source, aim.name, "queue-deleted", piece, now_ms)
                batch = piece.batch_alone()
                parts.write(source, moving.arrive(source, batch, origin, now_ms, piece.stamps()))
            parts.write(source, moving.finish_move(source, runs, now_ms))
            parts.write(source, moving.forget_origins(source, source.queue_id, runs, now_ms))
            return
        journey = self._journeys[source.queue_id] = Journey(source.queue_id, target.partition, runs, now_ms)
        # What arrived long ago is answered at once: that must not end the journey before the rest has set out.
        journey.under_way.add(SETTING_OUT)
        try:
            for piece in slices:
                self._send(journey, source, target, reason, piece, now_ms)
        except PenstockError:
            self._give_up(journey, now_ms)
            return
        journey.under_way.discard(SETTING_OUT)
        self._look(journey)

    def _send(
        self,
        journey: Journey,
        source: Partition,
        target: PartitionEntry,
        reason: Reason,
        piece: StoredSlice,
        now_ms: int,
    ) -> None:
        origin = origin_of(source, source.name, reason, piece, now_ms)
        message = MoveIn(self._next_number, target.partition, origin, piece.stamps())
        self._next_number += 1
        self._requests[message.number] = journey
        journey.under_way.add(message.number)
        stream = self._state.streams.get(target.primary or "")
        if self._state.serves(target.partition):
            self._take_in(
                message, piece.batch_alone(), now_ms, lambda: self.moved_in(MovedIn(message.number))
            )
        elif stream is not None:
            stream.send(message, piece.buffers())
        else:
            raise PenstockError(ErrorCode.UNREACHABLE, "the target's primary is not connected")

    def moved_in(self, answer: MovedIn) -> None:
        """Messages are committed at their target, or were refused there."""
        journey = self._requests.pop(answer.number, None)
        if journey is None:
            return
        if answer.refused:
            self._give_up(journey, self._state.now_ms)
            return
        journey.under_way.discard(answer.number)
        self._look(journey)

    def _look(self, journey: Journey) -> None:
        """All have arrived: they leave their source, and when that is committed the target may forget it."""
        state, queue_id = self._state, journey.source
        led = state.led.get(queue_id)
        if journey.under_way or self._journeys.get(queue_id) is not journey or led is None:
            return
        source = state.parts.catalogue.partitions[queue_id]
        try:
            state.parts.write(source, moving.finish_move(source, journey.runs, state.now_ms))
        except PenstockError:  # no room in the journal; what arrived is known there
            self._give_up(journey, state.now_ms)
            return
        del self._journeys[queue_id]
        led.when_committed(source.index, lambda: self._finished(journey))
        if source.moves:
            state.parts.movers.add(queue_id)

    def _finished(self, journey: Journey) -> None:
        message = MoveDone(journey.target, journey.source, journey.runs)
        known = self._state.layout.get(journey.target)
        stream = self._state.streams.get((known.entry.primary or "") if known is not None else "")
        if self._state.serves(journey.target):
            self.move_done(message)
        elif stream is not None:
            stream.send(message)

    def _give_up(self, journey: Journey, now_ms: int) -> None:
        """For now; the target knows what has arrived already."""
        for number in journey.under_way:
            self._requests.pop(number, None)
        if self._journeys.get(journey.source) is journey:
            del self._journeys[journey.source]
            self._retries[journey.source] = now_ms + RETRY_MS

    def layout_changed(self) -> None:
        """A target that was missing may be there now."""
        if self._homeless:
            self._state.parts.movers |= self._homeless
            self._homeless = set()

    def deposed(self, queue_id: int) -> None:
        """This node does not lead the source any more; its next primary goes on."""
        journey = self._journeys.pop(queue_id, None)
        self._retries.pop(queue_id, None)
        if journey is not None:
            for number in journey.under_way:
                self._requests.pop(number, None)

    def lost(self, node: str) -> None:
        """The stream to a node is gone, and with it what was asked of it."""
        for journey in dict.fromkeys(self._requests.values()):
            known = self._state.layout.get(journey.target)
            if known is None or known.entry.primary == node or known.entry.primary not in self._state.streams:
                self._give_up(journey, self._state.now_ms)

    def tick(self, now_ms: int) -> None:
        """Tries again what was given up, and gives up what nobody answers."""
        for journey in dict.fromkeys(self._requests.values()):
            if now_ms - journey.since_ms >= ANSWER_MS:
                self._give_up(journey, now_ms)
        for queue_id, at_ms in list(self._retries.items()):
            if at_ms <= now_ms:
                del self._retries[queue_id]
                self._state.parts.movers.add(queue_id)

    def next_ms(self) -> int | None:
        """When there is something to do."""
        answers = [journey.since_ms + ANSWER_MS for journey in self._requests.values()]
        return min((*self._retries.values(), *answers), default=None)

    # -- the target ------------------------------------------------------------------------------------------

    def move_in(self, node: str, message: MoveIn, body: memoryview) -> None:
        """Another node sends messages on their way."""
        stream = self._state.streams[node]

        def arrived() -> None:
            if self._state.streams.get(node) is stream:
                stream.send(MovedIn(message.number))

        self._state.parts.idle.used(message.target, self._state.now_ms)
        try:
            if not self._state.serves(message.target):
                raise PenstockError(ErrorCode.NOT_PRIMARY, "this node does not lead the target")
            self._take_in(message, Batch(bytes(body)), self._state.now_ms, arrived)
        except PenstockError as error:
            stream.send(MovedIn(message.number, str(error)))

    def _take_in(self, message: MoveIn, batch: Batch, now_ms: int, arrived: Callable[[], None]) -> None:
        target = self._state.parts.catalogue.partitions[message.target]
        self._state.led[message.target].check_numbers(target)
        self._state.parts.idle.used(message.target, now_ms)
        self._state.parts.write(target, moving.arrive(target, batch, message.origin, now_ms, message.stamps))
        # Also what arrived before may not be committed yet.
        self._state.led[message.target].when_committed(target.index, arrived)

    def move_done(self, message: MoveDone) -> None:
        """The source will not send these again."""
        if not self._state.serves(message.target):
            return
        target = self._state.parts.catalogue.partitions[message.target]
        try:
            self._state.parts.write(
                target, moving.forget_origins(target, message.source, message.runs, self._state.now_ms)
            )
        except PenstockError:
            return  # it is remembered for longer than needed, which does no harm
