"""The auditor: after all faults have ended, peeks at every remaining message, then receives them all."""

from __future__ import annotations

from penstock.model.reserved_queues import is_reserved
from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.consumer import Consumer
from penstock.simulation.workload.log_operator import LogOperator
from penstock.simulation.workload.log_reader import LogReader
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import ListQueues, Peek, Peeked, QueueDescription, QueueList

MOVES_END_MS = 20_000
DRAINED_MS = 45_000
"""Longer than any delay or lease of a scenario: everything must have come out by then."""
_VISIBILITY_MS = 30_000


class Auditor:
    """Drains, over the wire like other clients."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._client = stage.client("auditor")
        self._drains: set[int] = set()
        self._draining = 0
        self._drained = False

    def run(self) -> Steps[None]:
        """Everything, in order."""
        yield from self._await_moves()
        for description in (yield from self._list()):
            if description.damage is None and description.settings.has_queue:
                yield from self._peek(self._stage.note(description))
            if description.damage is None and description.settings.has_log:
                yield from self._read_log(self._stage.note(description))
        self._begin_to_drain((yield from self._list()))
        left, end_ms = -1, 0
        while not self._drained and (left < 0 or self._stage.schedule.elapsed_ms < end_ms):
            yield Pause(500)
            queues = yield from self._list()
            self._begin_to_drain(queues)
            before, left = left, sum(self._left(queue) for queue in queues)
            self._drained = not left
            if left != before:
                end_ms = self._stage.schedule.elapsed_ms + DRAINED_MS
        self._drained = True
        while self._draining:
            yield Pause(100)
        for description in (yield from self._list()):
            self._stage.note(description).statistics = description.statistics
            self._check_empty(description)

    def _begin_to_drain(self, queues: list[QueueDescription]) -> None:
        """Those that are not drained yet. One that was damaged may be well after a restart, as far as its node knows."""
        for description in queues:
            if description.damage is None and description.settings.has_queue:
                life = self._stage.note(description)
                if life.queue_id not in self._drains:
                    self._drains.add(life.queue_id)
                    self._draining += 1
                    self._stage.tasks.start(self._drain(life))

    def _list(self) -> Steps[list[QueueDescription]]:
        """All queues, page by page."""
        found: list[QueueDescription] = []
        for _ in range(1_000):
            reply = yield Ask(self._client, ListQueues(after=found[-1].name if found else ""))
            if reply is None or not isinstance(reply.answer, QueueList):
                yield Pause(100)
                continue
            found += reply.answer.queues
            if reply.answer.more:
                continue
            queues = [queue for queue in found if not is_reserved(queue.name)]
            for description in queues:
                life = self._stage.note(description)
                if description.damage is not None:
                    self._stage.recorder.damage_seen(life)
            return queues
        self._stage.recorder.history.stuck.append("the node does not answer although nothing is wrong")
        return []

    def _await_moves(self) -> Steps[None]:
        """Moving messages must arrive, unless their target is damaged."""
        before: dict[str, int] = {}
        end_ms = 0
        while True:
            queues = yield from self._list()
            damaged = {queue.name for queue in queues if queue.damage is not None}
            moving = {
                queue.name: queue.statistics.moving
                for queue in queues
                if queue.statistics.moving and not damaged & {queue.name, *self._targets(queue)}
            }
            if not moving:
                return
            if moving != before:
                before, end_ms = moving, self._stage.schedule.elapsed_ms + MOVES_END_MS
            if self._stage.schedule.elapsed_ms > end_ms:
                found = f"messages of {sorted(moving)} are still on their way"
                self._stage.recorder.history.stuck.append(found)
                return
            yield Pause(200)

    def _targets(self, queue: QueueDescription) -> set[str]:
        """The possible targets of moving messages of a queue; those of a dead-letter queue may go anywhere."""
        if queue.name.endswith(MOVED_TO):
            return set(self._stage.queues)
        return {queue.settings.dead_letter_queue or "", f"{queue.name}.late"}

    def _peek(self, life: QueueLife) -> Steps[None]:
        stage = self._stage
        start: int | None = 0
        while start is not None:
            asked_ms = stage.schedule.now_ms
            reply = yield Ask(self._client, Peek(life.queue_id, start, 1_000))
            if reply is None or not isinstance(reply.answer, Peeked):
                stage.failed(life, reply)
                return
            stage.recorder.peeked(life, reply.answer, reply.body, asked_ms)
            start = reply.answer.next

    def _read_log(self, life: QueueLife) -> Steps[None]:
        """Reads the rest of a log, and the offsets of its groups."""
        reader = LogReader(self._stage, "auditor")
        yield from LogOperator(self._stage, "auditor").list(life)
        bounds = yield from reader.find(life, None)
        offset = bounds.begin if bounds is not None else 0
        while bounds is not None and offset < bounds.end:
            found = yield from reader.read(life, offset, 0, None)
            if found is None:  # it was cut meanwhile, or is found to be damaged
                bounds = (yield from reader.find(life, None)) if life.damaged_ms is None else None
                offset = max(offset, bounds.begin) if bounds is not None else 0
            else:
                offset = found.next

    def _drain(self, life: QueueLife) -> Steps[None]:
        """Receives and deletes until nothing is left anywhere, or for long enough."""
        consumer = Consumer(self._stage, f"drain-{life.name}"[:12])
        before_ms = life.damaged_ms  # it may have been, and was restored since
        while not self._drained and life.damaged_ms == before_ms:
            messages = yield from consumer.receive(life, 500, 1_000, _VISIBILITY_MS)
            yield from consumer.settler.settle("delete", messages)
        self._draining -= 1

    def _left(self, queue: QueueDescription) -> int:
        """How many messages should still come out."""
        numbers = queue.statistics
        if queue.damage is not None:
            return 0
        left = numbers.ready + numbers.leased + numbers.delayed + numbers.moving + numbers.held
        damaged = {
            life.name for life in self._stage.recorder.history.lives.values() if life.damaged_ms is not None
        }
        if numbers.moving and damaged & self._targets(queue):
            # Messages that cannot arrive stay, and so do later ones of their group on a strict queue.
            return 0 if left == numbers.moving or self._stage.note(queue).strict else left
        return left

    def _check_empty(self, queue: QueueDescription) -> None:
        left = self._left(queue)
        if not left:
            return
        numbers = queue.statistics
        self._stage.recorder.history.stuck.append(
            f"{left} messages of {queue.name} did not come out within {DRAINED_MS} ms: {numbers.ready} ready, "
            f"{numbers.leased} leased, {numbers.delayed} delayed, {numbers.moving} moving, {numbers.held} held"
        )
