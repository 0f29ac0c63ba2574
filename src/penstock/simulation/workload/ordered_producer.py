"""Producers that send without waiting for answers, with the code of the client library: its link, line of sends and
gathering.

Each names the batch that a batch follows, so its batches must be stored in the order sent (`checkers/producer_order.py`).
"""

from __future__ import annotations

from penstock.client_core.call import Call, Unanswered
from penstock.client_core.gathering import GatheredBatch, Gathering
from penstock.client_core.queue_sender import QueueSender
from penstock.client_core.send_line import SendCall, SendLine, State
from penstock.model.errors import ErrorCode, PenstockError
from penstock.simulation.client_link import SimulatedLink
from penstock.simulation.message_history import QueueLife, SentBatch, SentMessage
from penstock.simulation.queue_plan import QueuePlan
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.producer import Producer, request_for
from penstock.simulation.workload.stage import Stage
from penstock.wire.messages import Answer, DescribeQueue, Failed, QueueDescription, Send, SendResult

_TIMEOUT_SECONDS = 6.0
_DISCONNECTED_SHARE = 0.02
_UNCERTAIN = (ErrorCode.UNREACHABLE, ErrorCode.INTERNAL, ErrorCode.METADATA_UNAVAILABLE)
"""After these errors the outcome of a batch is unknown."""


class OrderedProducer(Producer):
    """One client with one link, sending to all queues."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name)
        random = stage.random
        throttled_share = random.choice((0.0, 0.02, 0.1))
        self.stage = stage
        self.name = name
        self.link = SimulatedLink(
            name,
            stage.network_of(name),
            _TIMEOUT_SECONDS,
            random,
            lambda: not stage.stopping and random.random() < throttled_share,
        )
        self._lanes: dict[int, Lane] = {}

    def run(self) -> Steps[None]:
        """Sends until the run ends, then waits until all batches are stored or have failed."""
        stage, random = self.stage, self.stage.random
        pace_ms = random.choice((20, 60, 150))
        while not stage.stopping:
            yield Pause(random.randint(1, 2 * pace_ms))
            plan = random.choice(stage.plans())
            life = stage.life_of(plan.name)
            if life is None:
                yield from stage.look_up(self._client, plan.name)
                continue
            if life.queue_id not in self._lanes:
                self._lanes[life.queue_id] = Lane(self, plan, life)
            for _ in range(random.choice((1, 3, 8))):
                self._lanes[life.queue_id].send()
            if random.random() < _DISCONNECTED_SHARE:
                self.link.disconnect()
        for lane in self._lanes.values():
            lane.flush()
        while not all(lane.is_done() for lane in self._lanes.values()):
            yield Pause(20)

    def message(self, plan: QueuePlan, life: QueueLife) -> SentMessage:
        """A message for a queue."""
        return self._message(plan, life)

    def batch(self, plan: QueuePlan, life: QueueLife, messages: list[SentMessage]) -> SentBatch:
        """A batch of messages."""
        batch = self._batch(plan, life, messages)
        batch.is_ordered = True
        return batch


class NotedBatch(GatheredBatch):
    """A batch of the client library, and what the history knows of it."""

    __slots__ = ("_asked_ms", "_lane", "batch")

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self._lane = lane
        self._asked_ms = 0
        self.batch: SentBatch | None = None

    def launch(self) -> None:
        """Puts it in line."""
        lane = self._lane
        self.batch = lane.producer.batch(lane.plan, lane.life, self.messages)
        self.body = (self.batch.encoded,)
        self.submit(lane.sender)

    def head(self, queue_id: int, number: int, after: int) -> Send:
        """See `SendCall`; it is sent now."""
        batch, stage = self.batch, self._lane.producer.stage
        assert batch is not None
        assert queue_id == batch.life.queue_id
        if not batch.number:
            batch.number = number
            stage.recorder.history.batches.append(batch)
        assert number == batch.number
        stage.recorder.sending(batch)
        self._asked_ms = stage.schedule.now_ms
        return request_for(batch, after)

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """Stored."""
        if isinstance(answer, SendResult) and self.batch is not None:
            self._lane.producer.stage.recorder.send_answered(self.batch, answer)
            self._lane.trace(f"sent {self.batch.number}: {answer.runs} duplicates {answer.duplicates}")
        super().succeed(answer, body)

    def fail(self, error: PenstockError) -> None:
        """Refused, or given up; only batches in transit can have been refused."""
        if self.batch is not None and self.state is State.SENT:
            self._lane.trace(f"send {self.batch.number}: {error.code}")
            if not isinstance(error, Unanswered):
                self._lane.refused(self.batch, error, self._asked_ms)
        super().fail(error)

    def settled(self) -> None:
        """It is stored or has failed."""
        self._lane._finished(self)


class Lane(Gathering[NotedBatch]):
    """What one client sends to one incarnation of a queue."""

    def __init__(self, producer: OrderedProducer, plan: QueuePlan, life: QueueLife) -> None:
        random = producer.stage.random
        self.producer = producer
        self.plan = plan
        self.life = life
        self.sender = LaneSender(self)
        super().__init__(
            random.choice((1, 4, 10)),
            random.choice((400, 2_000)),
            random.choice((0.002, 0.02)),
            random.choice((1, 4, 16)),
            20_000,
        )

    def send(self) -> None:
        """Takes one more message, if there is room."""
        self.take_failures()
        if not self._held:
            message = self.producer.message(self.plan, self.life)
            self._put(message, len(message.body))

    def flush(self) -> None:
        """Sends what is being gathered."""
        if self._open.messages:
            self._seal()

    def is_done(self) -> bool:
        """Whether everything that was sent is stored or has failed."""
        return not self._flying and not self._backlog

    def trace(self, sentence: str) -> None:
        """For people."""
        self.producer.stage.trace.add(self.producer.name, f"{self.life.name}: {sentence}")

    def refused(self, batch: SentBatch, error: PenstockError, asked_ms: int) -> None:
        """A batch was refused; whether it may be stored all the same, the code says."""
        recorder = self.producer.stage.recorder
        if error.code is ErrorCode.QUEUE_DAMAGED:
            recorder.damage_seen(self.life)
        if error.code not in _UNCERTAIN:
            recorder.send_refused(batch, Failed(error.code, error.message), asked_ms)

    # -- see `Gathering` -------------------------------------------------------------------------------------

    def _new_batch(self) -> NotedBatch:
        return NotedBatch(self)

    def _now(self) -> float:
        return self.producer.link.now()

    def _set_timer(self, at: float) -> None:
        self.producer.link.at(at, self._lingered)

    def _may_launch(self, batch: NotedBatch) -> bool:
        return True

    def _launch(self, batch: NotedBatch) -> None:
        batch.launch()

    def _admit(self) -> None:
        """Does nothing: messages without room are not made."""


class LaneSender(QueueSender):
    """The line of batches to one incarnation; if the queue was created again, waiting batches have failed."""

    def __init__(self, lane: Lane) -> None:
        super().__init__(SendLine(_TIMEOUT_SECONDS, lane.producer.stage.random))
        self._lane = lane
        self._link = lane.producer.link
        self._wakes_at: float | None = None
        self.found(lane.life.queue_id)

    def now(self) -> float:
        """See `QueueSender`."""
        return self._link.now()

    def transmit(self, call: SendCall) -> None:
        """See `QueueSender`."""
        self._link.transmit(call)

    def wake_at(self, at: float | None) -> None:
        """See `QueueSender`."""
        self._wakes_at = at
        if at is not None:
            self._link.at(at, lambda: self._wake(at))

    def _wake(self, at: float) -> None:
        if self._wakes_at == at:
            self._wakes_at = None
            self.go_on()

    def look_up(self) -> None:
        """See `QueueSender`."""
        self._link.transmit(_LookUp(self, self._lane.life.name))

    def looked_up(self, answer: Answer) -> None:
        """The server says which incarnation there is."""
        if isinstance(answer, QueueDescription):
            self._lane.producer.stage.note(answer)
            if answer.queue_id == self._lane.life.queue_id:
                self.found(answer.queue_id)
                return
        self.not_found(PenstockError(ErrorCode.QUEUE_NOT_FOUND, "the queue was deleted"))

    def nothing_found(self, error: PenstockError) -> None:
        """The queue does not exist, or cannot be looked up."""
        if error.code is ErrorCode.QUEUE_NOT_FOUND:
            self._lane.producer.stage.queues.pop(self._lane.life.name, None)
        self.not_found(error)


class _LookUp(Call):
    """A request for the incarnation of a queue."""

    __slots__ = ("_sender",)

    def __init__(self, sender: LaneSender, name: str) -> None:
        super().__init__()
        self.message = DescribeQueue(name)
        self._sender = sender

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """The answer came."""
        self._sender.looked_up(answer)

    def fail(self, error: PenstockError) -> None:
        """There is none."""
        self._sender.nothing_found(error)
