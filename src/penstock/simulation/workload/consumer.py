"""Consumers: receive by polling or waiting, then delete, extend, release, forget, or misuse their messages."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.errors import ErrorCode
from penstock.model.runs import runs_of
from penstock.simulation.client import Impatient
from penstock.simulation.message_history import DeliveredMessage, Kind, QueueLife
from penstock.simulation.tasks import Ask, Asker, Pause, Steps
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import Delete, Delivery, Extend, Failed, Receipt, Receive, Release, Settled

_KEPT_RECEIPTS = 40


class Settler:
    """Settles delivered messages in the ways of consumers."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self.name = name
        self.client = stage.client(name)
        self._old: list[list[DeliveredMessage]] = []

    def work_off(self, messages: list[DeliveredMessage]) -> Steps[None]:
        """Handles one delivery, well or badly."""
        random = self._stage.random
        self._keep(messages)
        yield Pause(random.choice((0, 5, 50, 300)))
        style = random.random()
        if style < 0.55:
            yield from self.settle("delete", messages)
        elif style < 0.7:
            some = [message for message in messages if random.random() < 0.5]
            yield from self.settle("delete", some)
            if random.random() < 0.5:
                yield from self.settle("delete", [message for message in messages if message not in some])
        elif style < 0.8:
            yield from self.settle("extend", messages, random.choice((0, 300, 2_000, 6_000)))
            yield Pause(random.choice((0, 200, 1_500)))
            if random.random() < 0.7:
                yield from self.settle("delete", messages)
        elif style < 0.92:
            half = messages[: random.randint(1, len(messages))]
            yield from self.settle("release", half, random.choice((0, 0, 100, 1_500)))
        if random.random() < 0.08:
            yield from self._misuse()

    def settle(self, kind: Kind, messages: Sequence[DeliveredMessage], amount_ms: int = 0) -> Steps[None]:
        """Settles messages of one delivery and records the outcome."""
        if not messages:
            return
        stage = self._stage
        life = messages[0].life
        settlements = stage.recorder.settling(messages, kind, amount_ms)
        late = stage.random.random() < 0.4
        parts = _by_count(messages) if late else [list(messages)]
        receipts = [
            Receipt(
                part[0].token,
                runs_of(sorted(message.sequence for message in part)),
                part[0].receive_count if late else None,
            )
            for part in parts
        ]
        request: Delete | Release | Extend
        match kind:
            case "delete":
                request = Delete(receipts)
            case "release":
                request = Release(receipts, amount_ms)
            case "extend":
                request = Extend(receipts, amount_ms)
        asked_ms = stage.schedule.now_ms
        reply = yield Ask(self.client, request)
        runs = [run for receipt in receipts for run in receipt.runs]
        what = f"{kind} {runs} of {life.name} under lease {messages[0].lease}{' or after it' if late else ''}"
        if reply is not None and isinstance(reply.answer, Settled):
            of = dict(zip(map(id, messages), settlements, strict=True))
            for part, outcome in zip(parts, reply.answer.outcomes, strict=True):
                settled = [of[id(message)] for message in part]
                stage.recorder.settled(part, settled, outcome, again=reply.again)
            stage.trace.add(self.name, f"{what}: {_outcome(reply.answer)}")
            return
        failed = stage.failed(life, reply)
        stage.recorder.not_settled(settlements, failed, receipts=len(receipts))
        stage.trace.add(self.name, f"{what}: {failed.code if failed is not None else 'no answer'}")
        if failed is not None and life.damaged_ms is None:
            stage.recorder.history.refusals_of_settlements.append(
                (asked_ms, stage.schedule.now_ms, failed.code)
            )

    def _keep(self, messages: list[DeliveredMessage]) -> None:
        self._old.append(messages)
        if len(self._old) > _KEPT_RECEIPTS:
            self._old.pop(self._stage.random.randrange(len(self._old)))

    def _misuse(self) -> Steps[None]:
        """Uses old receipts again, or an invented one."""
        random = self._stage.random
        old = random.choice(self._old)
        if random.random() < 0.7:
            kind: Kind = random.choice(("delete", "release", "extend"))
            yield from self.settle(kind, old, random.choice((0, 1_000)) if kind != "delete" else 0)
            return
        token = bytearray(old[0].token)
        token[random.randrange(len(token))] ^= 1 << random.randrange(8)
        reply = yield Ask(self.client, Delete([Receipt(bytes(token), [(old[0].sequence, 1)])]))
        if reply is None or (isinstance(reply.answer, Failed) and reply.answer.code == ErrorCode.BAD_RECEIPT):
            return
        # A front end takes a receipt of a queue that is not there for one of a queue that was deleted.
        answer = reply.answer
        of_nobody = token[:8] != old[0].token[:8] or old[0].life.deletion_asked_ms is not None
        # Or for one of another queue, which may not have the partition that the number names, or which is deleted meanwhile.
        refusals = (ErrorCode.BAD_REQUEST, ErrorCode.QUEUE_NOT_FOUND)
        is_harmless = isinstance(answer, Failed) and answer.code in refusals
        if isinstance(answer, Settled):
            is_harmless = not any(outcome.done for outcome in answer.outcomes)
        if not (of_nobody and is_harmless):
            found = f"a forged receipt was answered with {reply.answer!r}"
            self._stage.recorder.history.forgeries_accepted.append((self._stage.schedule.now_ms, found))


def _by_count(messages: Sequence[DeliveredMessage]) -> list[list[DeliveredMessage]]:
    """Messages of one delivery, those together that were received equally often."""
    parts: dict[int, list[DeliveredMessage]] = {}
    for message in messages:
        parts.setdefault(message.receive_count, []).append(message)
    return list(parts.values())


def _outcome(settled: Settled) -> str:
    return ", ".join(
        f"{outcome.done} done, {outcome.gone} gone, stale {outcome.stale}" for outcome in settled.outcomes
    )


class Consumer:
    """One consumer that asks for messages."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._settler = Settler(stage, name)
        self._attempts = 0
        self._last_attempt = b""
        self._held: dict[tuple[int, bytes], list[DeliveredMessage]] = {}
        """By queue and attempt: the messages it got."""

    def run(self) -> Steps[None]:
        """Receives until the run ends."""
        stage, random = self._stage, self._stage.random
        pace_ms = random.choice((10, 50, 200))
        while not stage.stopping:
            yield Pause(random.randint(0, pace_ms))
            life = stage.pick_queue()
            if life is None:
                yield Pause(200)
                continue
            if life.name.endswith(MOVED_TO) and random.random() < 0.7:
                continue  # dead letters and late ones are mostly left for operators to redrive
            wait_ms = random.choice((0, 0, 300, 1_500))
            visibility_ms = random.choice((None, 150, 700, 3_000))
            messages = yield from self.receive(life, random.choice((1, 5, 20)), wait_ms, visibility_ms)
            if messages:
                if random.random() < 0.2:
                    stage.tasks.start(self._settler.work_off(messages))
                else:
                    yield from self._settler.work_off(messages)

    def receive(
        self, life: QueueLife, most: int, wait_ms: int, visibility_ms: int | None
    ) -> Steps[list[DeliveredMessage]]:
        """One receive; returns the messages."""
        stage = self._stage
        asked_ms = stage.schedule.now_ms
        max_bytes = stage.random.choice((None, None, 100, 2_000))
        max_leased = stage.random.choice((None, None, None, 30))
        attempt = self._attempt() if life.strict and stage.random.random() < 0.5 else b""
        request = Receive(life.queue_id, most, wait_ms, visibility_ms, max_bytes, max_leased, attempt)
        held = self._held.get((life.queue_id, attempt), [])
        least_ms = visibility_ms if visibility_ms is not None else life.least_ms("visibility_timeout_ms")
        extended = stage.recorder.settling(held, "extend", least_ms)
        asker: Asker = self._settler.client
        impatient = wait_ms > 0 and stage.random.random() < 0.2
        if impatient:
            asker = Impatient(self._settler.client, stage.random.randint(1, wait_ms))
        reply = yield Ask(asker, request, timeout_ms=wait_ms + 8_000)
        if attempt and stage.random.random() < (0.9 if reply is None else 0.3):
            self._last_attempt = attempt  # it is asked again, as one does when the answer was lost
        if reply is None:
            stage.recorder.not_settled(extended, None)
            stage.trace.add(self._name, f"receive from {life.name}: no answer")
            yield Pause(stage.random.randint(5, 300))
            return []
        if isinstance(reply.answer, Delivery):
            if stage.recorder.received_again(held, extended, reply.answer, asked_ms):
                stage.trace.add(self._name, f"received again from {life.name}: {describe(held)}")
                return held
            # A partition that has reached its share of the limit is not waited for, and says so only if all have.
            waited_ms = 0 if impatient or max_leased is not None else wait_ms
            found = self._note(life, reply.answer, reply.body, asked_ms, waited_ms, visibility_ms)
            if found and attempt:
                self._held[life.queue_id, attempt] = found
            return found
        failed = stage.failed(life, reply)
        assert failed is not None
        stage.recorder.not_settled(extended, failed)
        stage.trace.add(self._name, f"receive from {life.name}: {failed.code}")
        if failed.code == ErrorCode.QUEUE_NOT_FOUND:
            yield from stage.look_up(self._settler.client, life.name)
        yield Pause(stage.random.randint(10, 200))
        return []

    def _attempt(self) -> bytes:
        """An id for an attempt: the last one again, or a new one."""
        attempt, self._last_attempt = self._last_attempt, b""
        if not attempt:
            self._attempts += 1
            attempt = f"{self._name}-{self._attempts}".encode()
        return attempt

    def _note(
        self,
        life: QueueLife,
        delivery: Delivery,
        body: memoryview,
        asked_ms: int,
        wait_ms: int,
        visibility_ms: int | None,
    ) -> list[DeliveredMessage]:
        stage = self._stage
        if not delivery.batches:
            if wait_ms:
                stage.recorder.polled_in_vain(life, asked_ms, wait_ms)
            return []
        messages = stage.recorder.delivered(life, delivery, body, asked_ms, visibility_ms)
        stage.trace.add(self._name, f"received from {life.name}: {describe(messages)}")
        return messages

    @property
    def settler(self) -> Settler:
        """How it settles."""
        return self._settler


def describe(messages: Sequence[DeliveredMessage]) -> str:
    """A delivery for the trace."""
    first = messages[0]
    sequences = [message.sequence for message in messages]
    return f"{sequences} under lease {first.lease}, {first.receive_count} receives of the first"
