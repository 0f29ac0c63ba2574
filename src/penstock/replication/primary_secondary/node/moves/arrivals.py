"""Messages that move into partitions which this node leads, each once and in the order in which they left.

A target remembers what has arrived until the source has finished the move. Requests can come later than that, from a node that
led the source before. So every request has a place, which rises: the epoch of the source's primary, and its number there.

A target whose queue is deleted takes nothing in. It says what has arrived, when asked and unasked, until every source has finished
its moves. Only then is it given up (`draining`): a source may take a target that is gone for one that has nothing of its messages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from penstock.model import limits
from penstock.model.batch import Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.run_set import RunSet
from penstock.model.runs import Runs, count_of
from penstock.queue.decisions import move as moving
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.moves.safe_steps import AnswerNode, SafeStep, TellPrimary
from penstock.replication.primary_secondary.node.state import ClusterState
from penstock.wire.peer_messages import Arrived, AskArrived, MovedIn, MoveDone, MoveIn

TELL_MS = 500
"""So often a source is told what has arrived in a queue that is deleted, until it says that it has finished the move."""


class Arrivals:
    """What moves in."""

    def __init__(self, state: ClusterState, carry_out: Callable[[SafeStep], None]) -> None:
        self._state = state
        self._carry_out = carry_out
        """Takes a step that need not wait for other replicas."""
        self._tell_ms: dict[int, int] = {}
        """Target whose queue is deleted → when its sources are told next."""
        self._taken: dict[tuple[int, int], tuple[int, int]] = {}
        """By target and source: the place of the last request that was taken in while this node leads the target."""

    def deposed(self, partition_id: int) -> None:
        """This node does not lead a partition any more."""
        self._tell_ms.pop(partition_id, None)
        self._taken = {key: place for key, place in self._taken.items() if key[0] != partition_id}

    def move_in(self, node: str, message: MoveIn, body: memoryview) -> None:
        """Another node sends messages on their way."""
        stream = self._state.streams[node]
        arrived = AnswerNode(stream, MovedIn(message.number))

        self._state.parts.idle.used(message.target, self._state.now_ms)
        try:
            if not self._state.serves(message.target):
                raise PenstockError(ErrorCode.NOT_PRIMARY, "the node that was asked does not lead it")
            self.take_in(message, Batch(bytes(body)), self._state.now_ms, arrived)
        except PenstockError as error:
            stream.send(MovedIn(message.number, error.message))

    def take_in(self, message: MoveIn, batch: Batch, now_ms: int, arrived: SafeStep) -> None:
        """Messages of another partition, which this node or another one leads; raises where they cannot be taken in."""
        target = self._state.parts.catalogue.partitions[message.target]
        self._check_place(message, target)
        self._state.led[message.target].check_numbers(target)
        self._state.parts.idle.used(message.target, now_ms)
        self._state.parts.write(target, moving.arrive(target, batch, message.origin, now_ms, message.stamps))
        self._taken[message.target, message.origin.source_id] = message.epoch, message.number
        # Also what arrived before may be lost by a failover yet.
        self._when_everywhere(target, arrived)

    def _when_everywhere(self, target: Partition, step: SafeStep) -> None:
        if self._state.led[target.partition_id].when_everywhere(target.index, step):
            self._carry_out(step)

    def _check_place(self, message: MoveIn, target: Partition) -> None:
        """Raises where a request is too late, or where one that must arrive before it was refused."""
        if not message.epoch:
            return
        source_id, place = message.origin.source_id, (message.epoch, message.number)
        layout, taken = self._state.layout, self._taken.get((target.partition_id, source_id), (0, 0))
        if layout.get(source_id) is None and source_id not in layout.unreadable:
            why = "the node that was asked does not know their queue"
        elif place <= max(target.origins.forgotten(source_id), taken):
            why = "they were sent again since"
        elif message.follows and taken != (message.epoch, message.follows):
            why = "messages that go before them were refused"
        else:
            return
        raise PenstockError(ErrorCode.NOT_PRIMARY, why)

    def source_gone(self, source_id: int) -> None:
        """The entry of a partition is no longer in the store. With one that was given up goes all that is known of it."""
        if source_id not in self._state.layout.missing:
            self._end_source(source_id)

    def tick(self, now_ms: int) -> bool:
        """Entries that are missing for long do not come back. Whether there were any."""
        self._state.layout.pass_time(now_ms)
        lost = self._state.layout.take_lost()
        for source_id in lost:
            self._end_source(source_id)
        return bool(lost)

    def _end_source(self, source_id: int) -> None:
        for partition_id in self._state.led:
            target = self._state.parts.catalogue.partitions[partition_id]
            if target.origins.knows(source_id) and self._state.sends_on(partition_id):
                self._taken.pop((partition_id, source_id), None)
                try:
                    self._state.parts.write(target, moving.end_source(target, source_id, self._state.now_ms))
                except PenstockError:
                    continue  # it is remembered for longer than needed, which does no harm

    def move_done(self, message: MoveDone) -> None:
        """The source will not send these again."""
        if not self._state.sends_on(message.target):
            return
        target = self._state.parts.catalogue.partitions[message.target]
        try:
            self._state.parts.write(
                target,
                moving.forget_origins(
                    target, message.source, message.runs, self._state.now_ms, message.epoch, message.number
                ),
            )
        except PenstockError:
            return  # it is remembered for longer than needed, which does no harm

    # -- deleted queues --------------------------------------------------------------------------------------

    def asked(self, message: AskArrived) -> None:
        """A source wants to send elsewhere what has not arrived here."""
        partition_id = message.target
        if partition_id in self._state.drains and self._state.sends_on(partition_id):  # else more may arrive
            self._say(partition_id, message.source, message.runs)

    def _say(self, partition_id: int, source_id: int, runs: Runs) -> None:
        target = self._state.parts.catalogue.partitions[partition_id]
        answer = Arrived(partition_id, source_id, runs, target.origins.arrived(source_id, runs))
        self._when_everywhere(target, TellPrimary(source_id, answer))

    def unsettled(self, target: Partition) -> list[tuple[int, RunSet]]:
        """What has arrived from partitions that still are there, and that they may not know of."""
        layout, found = self._state.layout, []
        for source_id, runs in target.origins:
            known = layout.get(source_id)
            # This node may have started while the entry was missing.
            is_unheard = known is None and not layout.is_whole and source_id not in layout.ended
            is_hidden = source_id in layout.unreadable or source_id in layout.missing or is_unheard
            if is_hidden or (known is not None and not known.entry.retired):
                found.append((source_id, runs))
        return found

    def settle(self, target: Partition, now_ms: int) -> bool:
        """Whether every source of a partition whose queue is deleted knows what has arrived; those that do not are told."""
        partition_id = target.partition_id
        unsettled = self.unsettled(target)
        if not unsettled:
            return True
        is_safe = self._state.led[partition_id].primary.everywhere() >= target.index
        if is_safe and now_ms >= self._tell_ms.get(partition_id, 0):
            self._tell_ms[partition_id] = now_ms + TELL_MS
            for source_id, runs in unsettled:
                self._say(partition_id, source_id, [*islice(runs, limits.RUNS_PER_RECORD)])
        return False

    def explain(self, target: Partition) -> list[str]:
        """What people are told about a deleted queue that waits for its sources."""
        told = []
        for source_id, runs in self.unsettled(target):
            known, layout = self._state.layout.last(source_id), self._state.layout
            source = known.queue if known is not None else f"partition {source_id}"
            if source_id in layout.missing:
                why = "its entry is missing in the metadata store"
            elif source_id in layout.unreadable:
                why = "this version cannot read its entry"
            elif known is None:
                why = (
                    "its entry is not in the metadata store; it is waited for, in case somebody puts it back"
                )
            else:
                why = f"{known.primary} leads it" if known.primary else "it has no primary"
            count = f"{count_of(runs):,} message{'' if count_of(runs) == 1 else 's'}"
            told.append(f"{count} came from {source}, which has not confirmed them ({why})")
        return told
