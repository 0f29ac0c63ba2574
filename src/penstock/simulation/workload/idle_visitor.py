"""A client of a queue that is deleted when it is idle: it comes back now and then, just before the time is up or just after.

What it sees is held against three promises. A queue that was used is there for as long as its `idle_expiry_ms` says, also where
the clock is set forward meanwhile. As long as it is there, it has every message that was acknowledged and not deleted. And one that
is not used any more goes.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from penstock.backend.upkeep import idle_queues
from penstock.backend.upkeep.idle_queues import LOOKS_AT_ONCE
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.simulation.history import ClockStep
from penstock.simulation.recorder import slices
from penstock.simulation.tasks import Ask, Pause, Reply, Steps
from penstock.simulation.violation import Violation
from penstock.simulation.workload.stage import Stage
from penstock.wire.messages import (
    CreateQueue,
    Delete,
    Delivery,
    DescribeQueue,
    Failed,
    QueueDescription,
    Receipt,
    Receive,
    Send,
    SendResult,
)

NAME = "idle"
QUEUE = "visited"
EXPIRY_MS = (1_000, 1_500, 3_000)
_VISIBILITY_MS = 300
_PAUSES = (0.05, 0.5, 0.9, 1.0, 1.0, 1.02, 1.1, 1.5)
"""How long it stays away, as shares of the expiry."""
_CORRECTION = 0.2
"""How likely it is that clocks are set forward after a visit."""
_GONE_MS = 12_000
"""So long after its time a queue is gone, where nothing is wrong: nodes, the manager and the store have to agree on it first."""


class _Moment(NamedTuple):
    """A moment by true time, and by the clock that jumps."""

    elapsed_ms: int
    clock_ms: int


class IdleVisitor:
    """The client, and what it has seen."""

    def __init__(
        self, stage: Stage, random: Random, replicas: int = 1, *, corrects_clocks: bool = False
    ) -> None:
        """`corrects_clocks`: all clocks are set forward now and then, right after it was there; then it comes back soon."""
        self.violations: list[Violation] = []
        self.expired = 0
        """How often the queue was found to be gone."""
        self._stage = stage
        self._random = random
        self._corrects_clocks = corrects_clocks
        self._client = stage.client("visitor")
        self._settings = QueueSettings(
            idle_expiry_ms=random.choice(EXPIRY_MS),
            visibility_timeout_ms=_VISIBILITY_MS,
            replicas=replicas,
            partitions=1 if replicas == 1 else random.choice((1, 2, 3)),
        )
        self._expiry_ms = self._settings.idle_expiry_ms or 0
        self._queue_id = 0
        self._used = _Moment(0, 0)
        """When the last use was asked for that was answered: the queue was used then, or later."""
        self._kept: set[bytes] = set()
        """Messages that were acknowledged, and never deleted."""
        self._sent = 0

    def run(self) -> Steps[None]:
        """Comes and goes until the run ends."""
        while not self._stage.stopping:
            yield Pause(max(1, round(self._expiry_ms * self._random.choice(_PAUSES))))
            if not self._queue_id:
                yield from self._create()
            elif self._random.random() < 0.7:
                yield from self._send()
            else:
                yield from self._receive()
            if self._corrects_clocks and self._queue_id and self._random.random() < _CORRECTION:
                self._correct_clocks()
                yield Pause(self._expiry_ms // 4)
                yield from self._send()

    def _correct_clocks(self) -> None:
        schedule, forward_ms = self._stage.schedule, 2 * self._expiry_ms
        now_ms = schedule.now_ms
        self._stage.trace.add("visitor", f"all clocks step forward by {forward_ms} ms")
        self._stage.recorder.history.clock_steps.append(ClockStep(now_ms, now_ms + forward_ms))
        schedule.step_clock(forward_ms)

    def leave(self) -> Steps[None]:
        """All faults have ended: the messages are received, and then the queue is deleted as idle."""
        until_ms = self._stage.schedule.elapsed_ms + 4 * self._expiry_ms
        while self._queue_id and self._kept and self._stage.schedule.elapsed_ms < until_ms:
            yield from self._receive()
            yield Pause(50)
        if self._kept and self._queue_id:
            self._violated(
                f"queue {QUEUE!r} is there, without {len(self._kept)} messages: {sorted(self._kept)[:3]}"
            )
        yield Pause(self._expiry_ms + _GONE_MS)
        reply = yield Ask(self._client, DescribeQueue(QUEUE))
        if reply is not None and isinstance(reply.answer, QueueDescription):
            self._violated(
                f"queue {QUEUE!r} was not used for {self._expiry_ms + _GONE_MS} ms, and is still there"
            )

    def _create(self) -> Steps[None]:
        asked = self._now()
        reply = yield Ask(self._client, CreateQueue(QUEUE, self._settings))
        if reply is not None and isinstance(reply.answer, QueueDescription):
            self._queue_id, self._used = reply.answer.queue_id, asked
            self._kept.clear()

    def _send(self) -> Steps[None]:
        self._sent += 1
        body, asked = b"%d" % self._sent, self._now()
        reply = yield Ask(self._client, Send(self._queue_id), encode_parts([body]))
        if reply is not None and isinstance(reply.answer, SendResult):
            self._used = asked
            self._kept.add(body)
        else:
            self._note_refusal(reply)

    def _receive(self) -> Steps[None]:
        asked = self._now()
        reply = yield Ask(self._client, Receive(self._queue_id, 10, 0, _VISIBILITY_MS))
        if reply is None or not isinstance(reply.answer, Delivery):
            self._note_refusal(reply)
            return
        self._used = asked
        delivery = reply.answer
        for head, batch, _ in slices(delivery.batches, reply.body):
            bodies = [bytes(batch.body(index)) for index in range(head.count)] if batch is not None else []
            self._kept.difference_update(bodies)
            yield Ask(self._client, Delete([Receipt(delivery.token, [(head.first, head.count)])]))

    def _note_refusal(self, reply: Reply | None) -> None:
        """The queue may be gone; then it was not used for long enough."""
        answer = reply.answer if reply is not None else None
        if not isinstance(answer, Failed) or answer.code != ErrorCode.QUEUE_NOT_FOUND:
            return
        idle_ms = self._idle_ms()
        if idle_ms < self._expiry_ms:
            self._violated(
                f"queue {QUEUE!r} is gone {idle_ms} ms after it was used, with an expiry of {self._expiry_ms}"
            )
        self._stage.trace.add("visitor", f"{QUEUE} is gone, {idle_ms} ms after it was used")
        self._queue_id = 0
        self.expired += 1
        self._kept.clear()

    def _now(self) -> _Moment:
        return _Moment(self._stage.schedule.elapsed_ms, self._stage.schedule.now_ms)

    def _idle_ms(self) -> int:
        """For how long no client used the queue. A node cannot tell a small step of its clock from a look that came late."""
        passed_ms = self._stage.schedule.elapsed_ms - self._used.elapsed_ms
        unnoticed_ms = LOOKS_AT_ONCE * idle_queues.LOOK_MS
        steps = [
            after_ms - before_ms
            for before_ms, after_ms in self._stage.recorder.history.clock_steps
            if before_ms >= self._used.clock_ms
        ]
        return passed_ms + sum(step_ms for step_ms in steps if step_ms <= unnoticed_ms)

    def _violated(self, sentence: str) -> None:
        self.violations.append(Violation(NAME, self._stage.schedule.now_ms, sentence))
