"""Operators: describe queues, alter them, purge them, redrive dead letters, delete queues and create them again."""

from __future__ import annotations

from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import changed_settings
from penstock.simulation.message_history import QueueLife, Span
from penstock.simulation.tasks import Ask, Pause, Reply, Steps
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import (
    AlterQueue,
    Count,
    CreateQueue,
    DeleteQueue,
    DescribeNode,
    Done,
    Failed,
    Peek,
    Peeked,
    PeekFilter,
    Purge,
    QueueDescription,
    Redrive,
    Redriven,
)


class Operator:
    """One operator."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._client = stage.client(name)

    def set_up(self) -> Steps[None]:
        """Makes all queues of the scenario, before anything goes wrong."""
        for plan in self._stage.plans():
            yield from self.create(plan.name, plan.settings)
            if plan.settings.dead_letter_queue is not None:
                yield from self._stage.look_up(self._client, plan.settings.dead_letter_queue)

    def create(self, name: str, settings: QueueSettings) -> Steps[None]:
        """Makes a queue, however long it takes."""
        stage = self._stage
        while name not in stage.queues:
            reply = yield Ask(self._client, CreateQueue(name, settings))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                stage.note(reply.answer)
                stage.trace.add(self._name, f"made queue {name}, id {reply.answer.queue_id}")
                return
            if reply is not None and isinstance(reply.answer, Failed):
                stage.trace.add(self._name, f"could not make queue {name}: {reply.answer.code}")
                if reply.answer.code == ErrorCode.QUEUE_EXISTS:
                    yield from stage.look_up(self._client, name)
            if stage.stopping:
                return
            yield Pause(stage.random.randint(50, 400))

    def run(self) -> Steps[None]:
        """Does something every now and then."""
        stage, random = self._stage, self._stage.random
        destructive = random.random()
        while not stage.stopping:
            yield Pause(random.randint(50, 1_200))
            life = stage.pick_life()
            if life is None:
                continue
            action = random.random()
            if action < 0.25:
                yield from self._peek(life)
            elif action < 0.4:
                late = life.late_queue if random.random() < 0.6 else None
                yield from stage.look_up(self._client, late or life.name)
            elif action < 0.55:
                yield from self._alter(life)
            elif action < 0.8:
                dead = yield from self._redrive()
                if dead is not None and destructive < 0.35 and random.random() < 0.2:
                    yield from self._delete(dead)
            elif action < 0.83:
                yield Ask(self._client, DescribeNode())
            elif action < 0.88 and destructive < 0.5:
                yield from self._purge(life)
            elif action >= 0.88 and destructive < 0.35:
                # Delayed and moving messages are not deleted with their queue: so this happens more often than others.
                delays = stage.queues.get("delays") if random.random() < 0.5 else None
                yield from self._delete(delays or life)

    def delete(self, life: QueueLife) -> Steps[None]:
        """Deletes a queue and makes it again."""
        yield from self._delete(life)

    def _peek(self, life: QueueLife) -> Steps[None]:
        stage, random = self._stage, self._stage.random
        wanted = None
        if random.random() < 0.4:
            wanted = PeekFilter(
                states=["ready", "delayed"], body_contains=b"1" if random.random() < 0.5 else None
            )
        asked_ms = stage.schedule.now_ms
        reply = yield Ask(
            self._client, Peek(life.queue_id, random.choice((0, 50)), random.choice((3, 50)), wanted)
        )
        if reply is not None and isinstance(reply.answer, Peeked):
            seen = stage.recorder.peeked(life, reply.answer, reply.body, asked_ms)
            stage.trace.add(self._name, f"saw {len(seen)} messages in {life.name}")
        else:
            self._note_failure(life, reply)

    def _alter(self, life: QueueLife) -> Steps[None]:
        stage, random = self._stage, self._stage.random
        current = life.settings[-1]
        changes: dict[str, str | int | bool | None] = {
            "visibility_timeout_ms": random.choice((200, 1_000, 4_000))
        }
        if current.max_messages is not None:
            changes["max_messages"] = random.randint(5, 80)
        if current.max_groups is not None:
            changes["max_groups"] = random.randint(1, 6)
        if random.random() < 0.2 and life.name == "delays":
            changes["delay_ms"] = random.choice((0, 300, 900))
        if current.sorted and random.random() < 0.6:
            changes["window_ms"] = random.choice((0, 20, 300))
        if current.retain_bytes is not None:
            changes["retain_bytes"] = random.choice((1_000, 5_000, 20_000))
        if any(settings.lifecycle for settings in life.settings) and random.random() < 0.4:
            changes["lifecycle"] = not current.lifecycle
        life.settings.append(changed_settings(current, dict(changes)))
        reply = yield Ask(self._client, AlterQueue(life.name, changes))
        if reply is not None and isinstance(reply.answer, QueueDescription):
            stage.note(reply.answer)
            stage.trace.add(self._name, f"altered {life.name}: {changes}")
        else:
            self._note_failure(life, reply)

    def _redrive(self) -> Steps[QueueLife | None]:
        """Returns the queue whose messages may be moving now."""
        stage, random = self._stage, self._stage.random
        dead = [stage.queues[name] for name in sorted(stage.queues) if name.endswith(MOVED_TO)]
        if not dead:
            return None
        life = random.choice(dead)
        life.redriven = True
        request = Redrive(life.queue_id, None, random.choice((1, 10, 100)))
        if random.random() < 0.2 and "plain" in stage.queues:
            request = Redrive(life.queue_id, "plain", random.choice((1, 10)))
        reply = yield Ask(self._client, request)
        if reply is not None and isinstance(reply.answer, Redriven):
            stage.trace.add(self._name, f"redrove {reply.answer.messages} messages of {life.name}")
            return life
        self._note_failure(life, reply)
        return None

    def _purge(self, life: QueueLife) -> Steps[None]:
        stage = self._stage
        span = Span(stage.schedule.now_ms)
        life.purges.append(span)
        reply = yield Ask(self._client, Purge(life.queue_id))
        if reply is not None and isinstance(reply.answer, Count):
            span.answered_ms, span.messages = stage.schedule.now_ms, reply.answer.messages
            stage.trace.add(self._name, f"purged {reply.answer.messages} messages of {life.name}")
        else:
            self._note_failure(life, reply)

    def _delete(self, life: QueueLife) -> Steps[None]:
        stage = self._stage
        if life.deletion_asked_ms is None:
            life.deletion_asked_ms = stage.schedule.now_ms
        reply = yield Ask(self._client, DeleteQueue(life.name))
        if reply is not None and isinstance(reply.answer, Done):
            stage.trace.add(self._name, f"deleted {life.name}, id {life.queue_id}")
            stage.queues.pop(life.name, None)
        else:
            self._note_failure(life, reply)
            yield Pause(stage.random.randint(50, 400))
            yield from stage.look_up(self._client, life.name)
        if life.name not in stage.queues:
            yield Pause(stage.random.choice((0, 100, 1_500)))
            yield from self.create(life.name, life.settings[0])

    def _note_failure(self, life: QueueLife, reply: Reply | None) -> None:
        failed = self._stage.failed(life, reply)
        what = failed.code if failed is not None else "no answer"
        self._stage.trace.add(self._name, f"something about {life.name}: {what}")
        if failed is not None and failed.code == ErrorCode.QUEUE_NOT_FOUND:
            self._stage.queues.pop(life.name, None)
