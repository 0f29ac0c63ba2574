"""Operators of a cluster: those of a single node with more actions, and changes of the number of replicas.

An operator without an answer to a change repeats it until there is one.
"""

from __future__ import annotations

from collections import Counter

from penstock.model.errors import ERRORS, ErrorCode
from penstock.model.settings_checks import changed_settings
from penstock.routing.deleting import LATE
from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.operator import Operator
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import AlterQueue, Failed, QueueDescription, Redrive, Redriven

_ATTEMPTS = 40
_REDRIVES = 4


class ClusterOperator(Operator):
    """One operator. If there are several, the store says which queue a delete was for (`QueueAnswers.mark_deletions`)."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        replicas: tuple[int, ...],
        counts: Counter[str],
        *,
        destructive: bool,
    ) -> None:
        super().__init__(stage, name)
        self._counts = counts
        self._replicas = replicas
        """The possible numbers of replicas; none: it is never changed."""
        self._destructive = destructive

    def run(self) -> Steps[None]:
        """Does something every now and then."""
        stage, random = self._stage, self._stage.random
        while not stage.stopping:
            yield Pause(random.randint(100, 1_000))
            life = stage.pick_life()
            if life is None:
                continue
            action = random.random()
            if action < 0.1:
                yield from self._peek(life)
            elif action < 0.2:
                late = life.late_queue if random.random() < 0.6 else None
                yield from stage.look_up(self._client, late or life.name)
            elif action < 0.35:
                yield from self._alter(life)
            elif action < 0.55 or not self._destructive:
                dead = yield from self._redrive()
                if dead is not None and self._destructive and random.random() < 0.4:
                    yield from self._delete(dead)
                    self._counts["queue deleted with messages on their way"] += 1
            elif action < 0.8:
                yield from self._purge(life)
            else:
                yield from self._delete(life)

    def alter(self, life: QueueLife) -> Steps[None]:
        """Changes some settings of a queue."""
        yield from self._alter(life)

    def _alter(self, life: QueueLife) -> Steps[None]:
        stage, random = self._stage, self._stage.random
        current = life.settings[-1]
        changes: dict[str, str | int | bool | None] = {
            "visibility_timeout_ms": random.choice((200, 1_000, 4_000))
        }
        if life.name == "delays" and random.random() < 0.4:
            changes["delay_ms"] = random.choice((0, 300, 900))
        if current.sorted and random.random() < 0.4:
            changes["window_ms"] = random.choice((0, 20, 300))
        if self._replicas and random.random() < 0.6:
            changes["replicas"] = random.choice(self._replicas)
        life.settings.append(changed_settings(current, dict(changes)))
        for _ in range(_ATTEMPTS):
            reply = yield Ask(self._client, AlterQueue(life.name, changes))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                stage.note(reply.answer)
                stage.trace.add(self._name, f"altered {life.name}: {changes}")
                self._counts["queue altered"] += 1
                self._counts["number of replicas altered"] += "replicas" in changes
                return
            self._note_failure(life, reply)
            failed = reply.answer if reply is not None else None
            if isinstance(failed, Failed) and not ERRORS[ErrorCode(failed.code)].retryable:
                return
            yield Pause(random.randint(50, 400))

    def _redrive(self) -> Steps[QueueLife | None]:
        """Visits messages of a queue for dead or late letters, and moves them back or to another queue."""
        stage, random = self._stage, self._stage.random
        dead = [stage.queues[name] for name in sorted(stage.queues) if name.endswith(MOVED_TO)]
        for life in random.sample(dead, len(dead)):
            moved = yield from self._redrive_one(life)
            if moved:
                return life
        return None

    def _redrive_one(self, life: QueueLife) -> Steps[int]:
        """The number of moving messages in the answer."""
        stage, random = self._stage, self._stage.random
        life.redriven = True
        plain = stage.queues.get("plain")
        is_tight = plain is not None and plain.settings[0].replication == "sync"
        target = "plain" if is_tight and random.random() < 0.2 else None
        start: int | None = 0
        moved = 0
        for _ in range(_REDRIVES):
            if start is None:
                break
            request = Redrive(life.queue_id, target, random.choice((1, 10, 100)), start)
            reply = yield Ask(self._client, request)
            if reply is None or not isinstance(reply.answer, Redriven):
                self._note_failure(life, reply)
                return moved
            stage.trace.add(self._name, f"redrove {reply.answer.messages} messages of {life.name}")
            self._counts["message redriven"] += reply.answer.messages
            moved += reply.answer.messages
            start = reply.answer.next
        return moved

    def _purge(self, life: QueueLife) -> Steps[None]:
        yield from super()._purge(life)
        self._counts["purge"] += life.purges[-1].answered_ms is not None

    def _delete(self, life: QueueLife) -> Steps[None]:
        if life.name.endswith(LATE):  # refused while the queue whose late messages it receives exists
            return
        yield from super()._delete(life)
        now = self._stage.queues.get(life.name)
        self._counts["queue deleted and made again"] += now is not None and now is not life
