"""Messages on their way to a queue whose partition may be led by another node.

Each step waits until no failover can lose the one before, on the replicas of its partition:

    source   MoveStarted
    target   Sent, with its origin (remembered, so that the same messages arrive once, however often they are sent)
    source   MoveFinished
    target   OriginsForgotten, with the place up to which requests of the source may be about these messages

A request may arrive after all of that: it waited in the connection of a node that led the source before. It is known by its
place, the epoch and a number that rises, and refused. The primary that leads the source now sends again what must be sent again.

Whichever node fails in between, the message is in exactly one queue, or on its way with the target knowing whether it arrived. That
holds for `async` partitions too: what only their primary has is not counted on.

Where the target is deleted meanwhile the message goes elsewhere: back to where it was, or to the queue that has the name now
(`model/move_target.py`). What had arrived may have been received there, or redriven. So the partitions of the deleted queue are asked
first, for as long as they are there, and they stay until their sources know what has arrived (`arrivals`). What a source must know
before is one rule, in `next_step`. Messages of a queue that is deleted itself have nothing to go back to: they wait for a queue of that
name for a moment, and then go with their own.
"""

from __future__ import annotations

from typing import assert_never

from penstock.backend.receive.bodies import StoredSlice
from penstock.backend.send.moves import origin_of, slices_in_memory
from penstock.cluster.layout.entries import PartitionEntry
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.move_target import target_of
from penstock.model.runs import difference, intersection, normalized
from penstock.queue.decisions import move as moving
from penstock.queue.partition import Partition
from penstock.queue.state.outgoing_moves import MoveKey
from penstock.replication.primary_secondary.node.layout_view import ORDINAL_MARK
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.replication.primary_secondary.node.moves.arrivals import Arrivals
from penstock.replication.primary_secondary.node.moves.journey import SETTING_OUT, Journey, JourneyKey
from penstock.replication.primary_secondary.node.moves.next_step import (
    AskFirst,
    NoTarget,
    SendTo,
    Wait,
    awaited,
)
from penstock.replication.primary_secondary.node.moves.safe_steps import (
    AnswerNode,
    ArrivedHere,
    JourneyFinished,
    JourneyReady,
    SafeStep,
    TellPrimary,
)
from penstock.replication.primary_secondary.node.moves.targets import Targets
from penstock.replication.primary_secondary.node.state import ClusterState
from penstock.wire.peer_messages import Arrived, AskArrived, MovedIn, MoveDone, MoveIn

RETRY_MS = 200
ANSWER_MS = 3_000
"""A target that says nothing for so long is asked again; it may have been deposed meanwhile."""
HOMELESS_MS = 5_000
"""So long messages of a deleted queue wait for a target that is missing: it may just be made again."""
JOURNEYS_AT_ONCE = 8
"""From one partition, to different targets: what cannot be reached holds up nothing that goes elsewhere."""


class ClusterMoves:
    """One journey at a time from each partition to each target, so that messages arrive in the order in which they left."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._targets = Targets(state)
        self._journeys: dict[JourneyKey, Journey] = {}
        self._requests: dict[int, Journey] = {}
        self._next_number = 1
        self._again_ms: dict[int, int] = {}
        """Source → when to go on that found no room in the journal."""
        self._homeless_ms: dict[JourneyKey, int] = {}
        """Of deleted queues: since when a target is missing."""
        self.arrivals = Arrivals(state, self.carry_out)

    # -- the source ------------------------------------------------------------------------------------------

    def move_some(self, partition_id: int, now_ms: int) -> None:
        """The next step of the moves out of a partition; raises `ColdReadError` when bodies must be read first."""
        state = self._state
        state.parts.movers.discard(partition_id)  # it comes back when there is something to do
        partition, led = state.parts.catalogue.partitions.get(partition_id), state.led.get(partition_id)
        if partition is None or led is None or not state.sends_on(partition_id):
            return
        try:
            if partition_id in state.drains:
                state.parts.write(partition, moving.rescue(partition, now_ms))
            self._go_on(partition, led, now_ms)
        except PenstockError:  # no room in the journal
            state.parts.movers.discard(partition_id)
            self._again_ms[partition_id] = now_ms + RETRY_MS

    def _go_on(self, partition: Partition, led: LedPartition, now_ms: int) -> None:
        partition_id = partition.partition_id
        busy = sum(
            journey.source == partition_id and journey.phase != "resting"
            for journey in self._journeys.values()
        )
        for (aim, reason), runs in list(partition.moves.items()):
            journey = self._journeys.get((partition_id, aim))
            if journey is None and busy < JOURNEYS_AT_ONCE:
                busy += 1
                # What is in order waits for those before it.
                closed = [] if partition.settings.strict else self._targets.closed(partition_id, aim)
                first = led.sent_moves.passing(runs, closed, limits.MOVE_MESSAGES)
                journey = Journey(partition_id, aim, reason, first, now_ms)
                self._start(journey, partition, led)
            if journey is not None and journey.phase == "ready" and journey.reason == reason:
                self._set_out(partition, journey, now_ms)

    def _start(self, journey: Journey, partition: Partition, led: LedPartition) -> None:
        """It may set out when no failover can lose that its messages left."""
        self._journeys[journey.key] = journey
        self._when_everywhere(led, partition.index, JourneyReady(journey))

    def _when_everywhere(self, led: LedPartition, index: int, step: SafeStep) -> None:
        if led.when_everywhere(index, step):
            self.carry_out(step)

    def carry_out(self, step: SafeStep) -> None:
        """Takes a step that waited until no failover could lose the one before."""
        match step:
            case JourneyReady(journey):
                if self._journeys.get(journey.key) is journey:
                    journey.phase = "ready"
                    self._state.parts.movers.add(journey.source)
            case JourneyFinished(journey, epoch):
                number = self._next_number - 1
                done = MoveDone(journey.target, journey.source, journey.runs, epoch, number)
                self._tell(journey.target, done)
            case TellPrimary(partition_id, message):
                self._tell(partition_id, message)
            case AnswerNode(stream, answer):
                if self._state.streams.get(stream.node) is stream:
                    stream.send(answer)
            case ArrivedHere(answer):
                self.moved_in(answer)
            case _ as unreachable:
                assert_never(unreachable)

    def _tell(self, partition: int, message: MoveDone | AskArrived | Arrived) -> None:
        """Says something to whoever leads a partition, if it can be reached."""
        stream = self._targets.stream(partition)
        if self._state.sends_on(partition):
            match message:
                case MoveDone():
                    self.arrivals.move_done(message)
                case AskArrived():
                    self.arrivals.asked(message)
                case Arrived():
                    self.arrived(message)
        elif stream is not None:
            stream.send(message)

    def _ask(self, journey: Journey, partitions: list[int], now_ms: int) -> None:
        """Deleted queues that the messages may have arrived in have to say first that they have not."""
        journey.phase, journey.since_ms = "asking", now_ms
        journey.asked |= dict.fromkeys(partitions, False)
        for partition in partitions:
            self._tell(partition, AskArrived(partition, journey.source, normalized(journey.runs)))

    def arrived(self, message: Arrived) -> None:
        """A deleted queue says what it has taken in: that has left its source. The rest may go elsewhere."""
        state, partition_id = self._state, message.source
        source, led = state.parts.catalogue.partitions.get(partition_id), state.led.get(partition_id)
        target = state.layout.last(message.target)  # its node may read an entry that this one cannot
        if source is None or led is None or target is None or not state.sends_on(partition_id):
            return
        if message.arrived:
            names = {aim: target_of(aim).name.partition(ORDINAL_MARK)[0] for aim, _ in source.moves}
            moved = [runs for (aim, _), runs in source.moves.items() if names[aim] == target.queue]
            there = normalized(run for runs in moved for run in runs.among(normalized(message.arrived)))
            try:
                state.parts.write(source, moving.finish_move(source, there, state.now_ms))
            except PenstockError:  # no room in the journal; it is said again
                return
            led.sent_moves.finished(there)
            done = MoveDone(message.target, partition_id, message.arrived, led.epoch, self._next_number - 1)
            self._when_everywhere(led, source.index, TellPrimary(message.target, done))
            for journey in [one for one in self._journeys.values() if one.source == partition_id]:
                if intersection(normalized(journey.runs), there):
                    self._wake(journey)
        for journey in [one for one in self._journeys.values() if one.source == partition_id]:
            is_whole = not difference(normalized(journey.runs), message.asked)
            if journey.phase == "asking" and message.target in journey.asked and is_whole:
                journey.asked[message.target] = True
                if all(journey.asked.values()):
                    journey.phase = "ready"
                    state.parts.movers.add(partition_id)

    def _set_out(self, source: Partition, journey: Journey, now_ms: int) -> None:
        match self._targets.next_step(journey):
            case SendTo(target):
                self._send_to(target, source, journey, now_ms)
            case AskFirst(partitions):
                self._ask(journey, partitions, now_ms)
            case Wait(why, for_layout):
                self._rest(journey, now_ms, why, for_layout=for_layout)
            case NoTarget(why):
                self._find_no_way(source, journey, why, now_ms)
            case _ as unreachable:
                assert_never(unreachable)

    def _send_to(self, target: PartitionEntry, source: Partition, journey: Journey, now_ms: int) -> None:
        self._homeless_ms.pop(journey.key, None)
        slices = slices_in_memory(self._state.parts, source, journey.runs)
        journey.runs = [(piece.first, piece.messages) for piece in slices]
        journey.phase, journey.target, journey.since_ms = "under way", target.partition, now_ms
        # What arrived long ago is answered at once: that must not end the journey before the rest has set out.
        journey.under_way.add(SETTING_OUT)
        follows = 0
        try:
            for piece in slices:
                follows = self._send(journey, source, target, piece, follows)
                self._state.led[journey.source].sent_moves.sent(
                    target.partition, [(piece.first, piece.messages)]
                )
        except PenstockError as error:
            self._rest(journey, now_ms, error.message)
            return
        journey.under_way.discard(SETTING_OUT)
        self._look(journey)

    def _find_no_way(self, source: Partition, journey: Journey, why: str, now_ms: int) -> None:
        """The target is not there. Raises where the journal has no room; the journey is ready then as before."""
        parts, aim = self._state.parts, target_of(journey.aim)
        if journey.reason == "late" or source.partition_id in self._state.drains:
            self._homeless_ms.setdefault(journey.key, now_ms)
            self._rest(journey, now_ms, why, for_layout=True)
        elif journey.reason == "redrive":
            # A dead letter whose way back is gone stays where it is, and says so.
            self._state.led[source.partition_id].check_numbers(source)
            slices = slices_in_memory(parts, source, journey.runs)
            runs = [(piece.first, piece.messages) for piece in slices]
            for piece in slices:
                origin = origin_of(source, aim.name, "queue-deleted", piece, now_ms)
                batch = piece.batch_alone()
                parts.write(source, moving.arrive(source, batch, origin, now_ms, piece.stamps()))
            parts.write(source, moving.finish_move(source, runs, now_ms))
            self._end(journey)
            parts.write(source, moving.forget_origins(source, source.partition_id, runs, now_ms))
        else:
            parts.write(source, moving.abandon_move(source, journey.runs, now_ms))
            self._end(journey)

    def _send(
        self, journey: Journey, source: Partition, target: PartitionEntry, piece: StoredSlice, follows: int
    ) -> int:
        """Sends a piece of a journey that is to arrive behind another; returns the number of the request."""
        now_ms, epoch = self._state.now_ms, self._state.led[source.partition_id].epoch
        origin = origin_of(source, source.name, journey.reason, piece, now_ms)
        message = MoveIn(self._next_number, target.partition, origin, piece.stamps(), epoch, follows)
        self._next_number += 1
        self._requests[message.number] = journey
        journey.under_way.add(message.number)
        stream = self._state.streams.get(target.primary or "")
        if self._state.serves(target.partition):
            self.arrivals.take_in(message, piece.batch_alone(), now_ms, ArrivedHere(MovedIn(message.number)))
        elif stream is not None:
            stream.send(message, piece.buffers())
        else:
            primary = (
                f"{target.primary}, its primary, is not connected" if target.primary else "it has no primary"
            )
            raise PenstockError(ErrorCode.UNREACHABLE, primary)
        return message.number

    def moved_in(self, answer: MovedIn) -> None:
        """Messages are safe at their target, or were refused there."""
        journey = self._requests.pop(answer.number, None)
        if journey is None:
            return
        if answer.refused:
            self._rest(journey, self._state.now_ms, answer.refused)
            return
        journey.under_way.discard(answer.number)
        self._look(journey)

    def _look(self, journey: Journey) -> None:
        """All have arrived: they leave their source, and when no failover can lose that the target may forget it."""
        state, partition_id = self._state, journey.source
        led = state.led.get(partition_id)
        if journey.under_way or self._journeys.get(journey.key) is not journey or led is None:
            return
        source = state.parts.catalogue.partitions[partition_id]
        try:
            state.parts.write(source, moving.finish_move(source, journey.runs, state.now_ms))
        except PenstockError as error:  # no room in the journal; what arrived is known there
            self._rest(journey, state.now_ms, error.message)
            return
        led.sent_moves.finished(journey.runs)
        self._end(journey)
        self._when_everywhere(led, source.index, JourneyFinished(journey, led.epoch))
        if source.moves:
            state.parts.movers.add(partition_id)

    def _end(self, journey: Journey) -> None:
        """It is over, or given up: the next one may start."""
        for number in journey.under_way:
            self._requests.pop(number, None)
        journey.under_way.clear()
        if self._journeys.get(journey.key) is journey:
            del self._journeys[journey.key]

    def _rest(self, journey: Journey, now_ms: int, why: str, *, for_layout: bool = False) -> None:
        """It is given up for now, or until its target is there; the target knows what has arrived already."""
        for number in journey.under_way:
            self._requests.pop(number, None)
        journey.under_way.clear()
        journey.phase, journey.why = "resting", why
        journey.again_ms = None if for_layout else now_ms + RETRY_MS

    def _wake(self, journey: Journey) -> None:
        self._end(journey)
        self._state.parts.movers.add(journey.source)

    def layout_changed(self) -> None:
        """A target that was missing may be there now."""
        for journey in list(self._journeys.values()):
            if journey.phase == "resting" and journey.again_ms is None:
                self._wake(journey)

    def deposed(self, partition_id: int) -> None:
        """This node does not lead a partition any more; its next primary goes on."""
        self.arrivals.deposed(partition_id)
        self._again_ms.pop(partition_id, None)
        for journey in [one for one in self._journeys.values() if one.source == partition_id]:
            self._end(journey)
        for key in [key for key in self._homeless_ms if key[0] == partition_id]:
            del self._homeless_ms[key]

    def lost(self, node: str) -> None:
        """The stream to a node is gone, and with it what was asked of it."""
        for journey in dict.fromkeys(self._requests.values()):
            known = self._state.layout.get(journey.target)
            reached = {self._state.node, *self._state.streams} - {node}
            if known is None or known.entry.primary not in reached:
                self._rest(journey, self._state.now_ms, f"the connection to {node} was lost")

    def tick(self, now_ms: int) -> None:
        """Tries again what was given up, and gives up what nobody answers."""
        if self.arrivals.tick(now_ms):
            self.layout_changed()
        for journey in list(self._journeys.values()):
            if journey.phase in ("asking", "under way") and now_ms - journey.since_ms >= ANSWER_MS:
                self._rest(journey, now_ms, "it does not answer")
            elif journey.phase == "resting" and journey.again_ms is not None and journey.again_ms <= now_ms:
                self._wake(journey)
        for partition_id, at_ms in list(self._again_ms.items()):
            if at_ms <= now_ms:
                del self._again_ms[partition_id]
                self._state.parts.movers.add(partition_id)

    def next_ms(self) -> int | None:
        """When there is something to do."""
        missing_ms = self._state.layout.next_ms()
        times = [*self._again_ms.values(), *([missing_ms] if missing_ms is not None else [])]
        for journey in self._journeys.values():
            if journey.phase in ("asking", "under way"):
                times.append(journey.since_ms + ANSWER_MS)
            elif journey.phase == "resting" and journey.again_ms is not None:
                times.append(journey.again_ms)
        return min(times, default=None)

    # -- deleted queues --------------------------------------------------------------------------------------

    def awaited(self, partition: Partition, now_ms: int) -> list[MoveKey]:
        """What of a partition is on its way and has somewhere to go, or may have in a moment."""
        return [
            move for move in partition.moves if not self._is_homeless(partition.partition_id, move[0], now_ms)
        ]

    def _is_homeless(self, partition_id: int, aim: str, now_ms: int) -> bool:
        since_ms = self._homeless_ms.get((partition_id, aim))
        if since_ms is None or now_ms - since_ms < HOMELESS_MS:
            return False
        return self._targets.find(partition_id, aim) is None and awaited(self._state.layout, aim) is None

    def why_waits(self, partition_id: int, aim: str) -> str:
        """What people are told about messages on their way to a target; empty: nothing is wrong."""
        journey, target = self._journeys.get((partition_id, aim)), self._targets.find(partition_id, aim)
        if target is None or (journey is not None and journey.why):
            return journey.why if journey is not None else ""
        return f"{target.primary} leads it" if target.primary else "it has no primary"
