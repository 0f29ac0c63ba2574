"""I11 for clients: a front end's answer about creating, changing or deleting a queue was true at some time while the client
waited.

Answers from a front end's own knowledge may be older. But a front end never goes back to an earlier incarnation of a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.cluster.layout.entries import decode_queue, queue_key
from penstock.model.errors import ErrorCode
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.cluster.store_history import StoreHistory
from penstock.simulation.history import History
from penstock.simulation.schedule import Schedule
from penstock.simulation.tasks import Reply
from penstock.simulation.violation import Violation
from penstock.wire.messages import (
    AlterQueue,
    CreateQueue,
    DeleteQueue,
    Done,
    Failed,
    QueueDescription,
    Request,
)

Settled = Callable[[Reply | None], None]


@dataclass(slots=True)
class Deletion:
    """A request to delete a queue: the versions of the store at its beginning and its answer."""

    name: str
    asked: int
    asked_ms: int
    answered: int | None = None


class QueueAnswers:
    """Gets all answers to clients about queues."""

    def __init__(self, metadata: SimulatedMetadata, history: StoreHistory, schedule: Schedule) -> None:
        self.violations: list[Violation] = []
        self._metadata = metadata
        self._history = history
        self._schedule = schedule
        self._deletions: list[Deletion] = []

    def observe(self, client: SimulatedClient) -> None:
        """Gets the answers to one client from now on."""
        ask = client.ask
        newest: dict[str, int] = {}
        """By name: when the latest incarnation that the client knows was created, as a version of the store."""

        def observed(request: Request, body: bytes, timeout_ms: int, done: Settled) -> None:
            asked = self._metadata.version
            name = getattr(request, "name", "")
            told = newest.get(name, 0)  # answers may overtake each other: those before the request count

            deletion = Deletion(name, asked, self._schedule.now_ms)
            if isinstance(request, DeleteQueue):
                self._deletions.append(deletion)

            def answered(reply: Reply | None) -> None:
                if reply is not None:
                    deletion.answered = self._metadata.version
                    self._check(client.name, request, reply, asked)
                    newest[name] = max(newest.get(name, 0), self._check_order(client.name, reply, told))
                done(reply)

            ask(request, body, timeout_ms, answered)

        setattr(client, "ask", observed)  # noqa: B010  # mypy: a method is not assigned to

    def _check(self, who: str, request: Request, reply: Reply, asked: int) -> None:
        if not isinstance(request, CreateQueue | AlterQueue | DeleteQueue):
            return
        answer, name = reply.answer, request.name
        ready = self._ready(name, asked)
        match answer:
            case QueueDescription() if answer.queue_id not in ready:
                self._violated(
                    who, f"queue {name!r} is {answer.queue_id}, and while it waited there were {ready}"
                )
            case Done() if None not in ready:
                self._violated(who, f"queue {name!r} is deleted, and it was there all the time")
            case Failed(code=ErrorCode.QUEUE_NOT_FOUND) if None not in ready:
                self._violated(who, f"there is no queue {name!r}, and it was there all the time")
            case Failed(code=ErrorCode.QUEUE_EXISTS) if ready == {None}:
                self._violated(who, f"queue {name!r} exists, and it was not there all the time")
            case _:
                pass

    def mark_deletions(self, history: History) -> None:
        """Notes for each deleted queue since when its deletion was requested, if several operators did so.

        A delete is by name: it may be meant for one incarnation and end the next one, which another operator created.
        """
        for life in history.lives.values():
            if life.deletion_asked_ms is not None:
                continue
            made, ended = self._made(life.name, life.queue_id), self._ended(life.name, life.queue_id)
            asked_ms = [
                deletion.asked_ms
                for deletion in self._deletions
                if deletion.name == life.name
                and made is not None
                and ended is not None
                and deletion.asked < ended
                and (deletion.answered is None or deletion.answered > made)
            ]
            life.deletion_asked_ms = min(asked_ms, default=None)

    def _ended(self, name: str, queue_id: int) -> int | None:
        """At which version of the store a queue could be used no longer."""
        was_ready = False
        for change in self._history.of_key(queue_key(name)):
            entry = decode_queue(change.value) if change.value is not None else None
            is_ready = entry is not None and entry.queue_id == queue_id and entry.state == "ready"
            if was_ready and not is_ready:
                return change.version
            was_ready = is_ready
        return None

    def _ready(self, name: str, asked: int) -> set[int | None]:
        """The incarnations that could be used at some moment since; None: there was a moment without any."""
        found: set[int | None] = set()
        for value in self._history.during(queue_key(name), asked, self._metadata.version):
            entry = decode_queue(value) if value is not None else None
            found.add(entry.queue_id if entry is not None and entry.state == "ready" else None)
        return found

    def _check_order(self, who: str, reply: Reply, told: int) -> int:
        """When the incarnation was made that an answer is about; 0: it is about none."""
        answer = reply.answer
        if not isinstance(answer, QueueDescription):
            return 0
        made = self._made(answer.name, answer.queue_id)
        if made is None:
            self._violated(who, f"queue {answer.name!r} is {answer.queue_id}, which never was")
            return 0
        if made < told:
            self._violated(
                who, f"queue {answer.name!r} is {answer.queue_id}, after it was told of a later one"
            )
        return made

    def _made(self, name: str, queue_id: int) -> int | None:
        for change in self._history.of_key(queue_key(name)):
            if change.value is not None and decode_queue(change.value).queue_id == queue_id:
                return change.version
        return None

    def _violated(self, who: str, sentence: str) -> None:
        self.violations.append(Violation("I11", self._schedule.now_ms, f"{who} is told that {sentence}"))


class ObservedStage(ClusterStage):
    """A stage whose clients are observed."""

    answers: QueueAnswers

    def client(self, name: str) -> SimulatedClient:
        """A new client."""
        client = super().client(name)
        self.answers.observe(client)
        return client
