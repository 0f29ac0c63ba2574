"""Producers: batches with every column a queue allows, sent again under the same number until they are answered."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.batch import UNSET, encode_parts
from penstock.model.errors import ERRORS, ErrorCode
from penstock.simulation.message_history import QueueLife, SentBatch, SentMessage
from penstock.simulation.queue_plan import QueuePlan
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.stage import Stage
from penstock.simulation.workload.stamping import BatchStamp, Stamper
from penstock.wire.messages import Send, SendResult

_ATTEMPTS = 12
_RETRIED_MS = 240_000
"""A batch is not sent again after so long: a node that has many producers forgets idle ones after five minutes."""


class Producer:
    """One producer with its own identity, sending to all queues."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._client = stage.client(name)
        self._producer = stage.random.getrandbits(60) + 1
        self._numbers: dict[int, int] = {}
        self._in_flight = 0
        self._stamper = Stamper(stage, name)
        self._has_private_ids = stage.random.random() < 0.5
        if any(plan.stamped for plan in stage.plans()):
            stage.tasks.start(self._stamper.run())

    def run(self) -> Steps[None]:
        """Sends until the run ends."""
        stage, random = self._stage, self._stage.random
        pace_ms = random.choice((40, 100, 250))
        pipelined = random.random() < 0.4
        while not stage.stopping:
            yield Pause(random.randint(1, 2 * pace_ms))
            plan = random.choice(stage.plans())
            life = stage.life_of(plan.name)
            if life is None:
                yield from stage.look_up(self._client, plan.name)
                continue
            batch = self._compose(plan, life, random.choice((1, 1, 3, 10)))
            if pipelined and self._in_flight < 8:
                self._in_flight += 1
                stage.tasks.start(self._deliver_aside(batch, _ATTEMPTS))
            else:
                yield from self._deliver(batch, _ATTEMPTS)

    def _deliver_aside(self, batch: SentBatch, attempts: int) -> Steps[None]:
        yield from self._deliver(batch, attempts)
        self._in_flight -= 1

    def _deliver(self, batch: SentBatch, attempts: int) -> Steps[None]:
        """Sends a batch until it has a final answer; now and then again without a reason."""
        stage, random, life = self._stage, self._stage.random, batch.life
        again = random.random() < 0.05
        began_ms = stage.schedule.elapsed_ms
        for _ in range(attempts):
            if stage.schedule.elapsed_ms - began_ms > _RETRIED_MS:
                return
            asked_ms = stage.schedule.now_ms
            stage.recorder.sending(batch)
            reply = yield Ask(self._client, request_for(batch), batch.encoded)
            if reply is None:
                stage.trace.add(self._name, f"send {batch.number} to {life.name}: no answer")
                yield Pause(random.randint(5, 400))
                continue
            if isinstance(reply.answer, SendResult):
                stage.recorder.send_answered(batch, reply.answer)
                stage.trace.add(
                    self._name,
                    f"sent {batch.number} to {life.name}: {reply.answer.runs} duplicates {reply.answer.duplicates}",
                )
                if not again:
                    return
                again = False
                yield Pause(random.choice((0, 300, 3_000)))
                continue
            failed = stage.failed(life, reply)
            assert failed is not None
            stage.trace.add(self._name, f"send {batch.number} to {life.name}: {failed.code}")
            stage.recorder.send_refused(batch, failed, asked_ms)
            if failed.code == ErrorCode.QUEUE_NOT_FOUND:
                yield from stage.look_up(self._client, life.name)
                return
            if not ERRORS[ErrorCode(failed.code)].retryable or random.random() < 0.3:
                return
            yield Pause(random.randint(20, 500))

    # -- composing -------------------------------------------------------------------------------------------

    def _compose(self, plan: QueuePlan, life: QueueLife, most: int) -> SentBatch:
        random = self._stage.random
        messages = [self._message(plan, life) for _ in range(random.randint(1, most))]
        batch = self._batch(plan, life, messages)
        batch.number = self._numbers[life.queue_id] = self._numbers.get(life.queue_id, 0) + 1
        self._stage.recorder.history.batches.append(batch)
        return batch

    def _batch(self, plan: QueuePlan, life: QueueLife, messages: list[SentMessage]) -> SentBatch:
        """A batch that has no number yet."""
        stamp = self._stamp(plan, messages)
        batch = SentBatch(life, self._producer, 0, messages, _encode(messages, stamp))
        if stamp is not None:
            batch.first_id, batch.uncertainty_us = stamp.first, stamp.uncertainty_us
        return batch

    def _stamp(self, plan: QueuePlan, messages: Sequence[SentMessage]) -> BatchStamp | None:
        """Most batches of queues that go by stamps have some; any program may send without."""
        if not plan.stamped or self._stage.random.random() < 0.15:
            return None
        private = plan.settings.ordering == "causal" and self._has_private_ids
        stamp = self._stamper.stamp(len(messages), private=private)
        if stamp is not None:
            for index, message in enumerate(messages):
                message.identifier = stamp.identifier(index)
                message.made_us = self._stage.schedule.true_us
                message.uncertainty_us = stamp.uncertainty_us if stamp.synchronized else None
        return stamp

    def _message(self, plan: QueuePlan, life: QueueLife) -> SentMessage:
        stage, random = self._stage, self._stage.random
        number = stage.next_message
        stage.next_message += 1
        size = random.choice((0, 10, 60, 300)) if random.random() < 0.97 else 700
        message = SentMessage(
            number=number,
            life=life,
            body=b"%d|" % number + random.randbytes(size),
            attributes=b"\x81\xa1n\xce" + number.to_bytes(4, "big") if random.random() < 0.2 else b"",
            group=b"group-%d" % random.randrange(plan.groups)
            if plan.groups and random.random() < 0.9
            else b"",
            priority=random.randrange(10) if plan.priorities else 0,
            delay_ms=random.randint(0, plan.delays_ms) if plan.delays_ms and random.random() < 0.5 else None,
            ttl_ms=random.randint(50, plan.ttls_ms) if plan.ttls_ms and random.random() < 0.5 else None,
            deduplication_id=self._identifier(plan, number),
            asked_ms=stage.schedule.now_ms,
            began_us=stage.schedule.true_us,
        )
        stage.recorder.history.messages[number] = message
        return message

    def _identifier(self, plan: QueuePlan, number: int) -> bytes:
        """Ids come and go, and several producers use the same ones at the same time."""
        if not plan.deduplication or self._stage.random.random() < 0.2:
            return b""
        newest = number // 10
        return b"id-%d" % (newest - self._stage.random.randrange(min(newest + 1, plan.deduplication)))


def request_for(batch: SentBatch, after: int = 0) -> Send:
    """The request for a batch, the same every time but for the batch that it follows."""
    process, counter, time_us = 0, 0, 0
    if batch.first_id is not None:
        time_us, process, counter = batch.first_id
    return Send(
        batch.life.queue_id,
        batch.producer,
        batch.number,
        process,
        counter,
        time_us,
        batch.uncertainty_us,
        after=after,
    )


def _encode(messages: Sequence[SentMessage], stamp: BatchStamp | None) -> bytes:
    """The batch; a column is there only if a message needs it."""

    def needed(values: list[bytes]) -> list[bytes] | None:
        return values if any(values) else None

    return encode_parts(
        [message.body for message in messages],
        priorities=[message.priority for message in messages] if any(m.priority for m in messages) else None,
        delays_ms=_times([message.delay_ms for message in messages]),
        ttls_ms=_times([message.ttl_ms for message in messages]),
        groups=needed([message.group for message in messages]),
        deduplication_ids=needed([message.deduplication_id for message in messages]),
        attributes=needed([message.attributes for message in messages]),
        stamps_us=stamp.times_us if stamp is not None else None,
    )


def _times(values: list[int | None]) -> list[int] | None:
    if all(value is None for value in values):
        return None
    return [UNSET if value is None else value for value in values]
