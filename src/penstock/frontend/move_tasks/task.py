"""The stored state of message move tasks: the last ten of each source queue, in one entry.

One entry for each source makes "only one task runs" a single compare-and-set. A task has an owner, the front end that
moves its messages, which shows every second that it is alive. After ten seconds of silence another one takes over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.frontend.context import Context
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.metadata.store.interface import ABSENT, Entry
from penstock.model.document import Document, DocumentReader
from penstock.model.limits import SECOND_MS
from penstock.sqs.compatibility import MOVE_TASKS_LISTED
from penstock.sqs.names import QueueArn, parse_arn
from penstock.sqs.refusals import invalid_parameter, resource_not_found
from penstock.sqs.shapes.moves import TaskStatus

PREFIX = "moves/"
SILENCE_MS = 10 * SECOND_MS
ACTIVE: frozenset[TaskStatus] = frozenset({"RUNNING", "CANCELLING"})


class MoveTask(Document, frozen=True, kw_only=True):
    """One task."""

    task_id: str
    source_arn: str
    destination_arn: str | None = None
    destination: str | None = None
    """The engine's name of it; None: each message goes back to where it died."""
    messages_per_second: int | None = None
    status: TaskStatus = "RUNNING"
    moved: int = 0
    to_move: int
    started_ms: int
    failure_reason: str | None = None
    owner: str = ""
    """The front end that moves; empty: none yet."""
    heartbeat_ms: int = 0
    position: int = 0
    """The next sequence number to examine."""
    until: int
    """Messages with later numbers are not moved; otherwise one that fails again would move in circles forever."""
    partitions: int = 1
    """Of the source; each is gone through up to `until`."""

    @property
    def active(self) -> bool:
        """Whether there is still something to do."""
        return self.status in ACTIVE

    def free(self, owner: str, now_ms: int) -> bool:
        """Whether this front end may take it: it has no owner, or one that is silent."""
        return self.owner != owner and (not self.owner or now_ms - self.heartbeat_ms > SILENCE_MS)


class MoveHistory(Document, frozen=True, kw_only=True):
    """The tasks of one source queue, newest first; `queue_id` is the incarnation that they belong to."""

    queue_id: int
    tasks: tuple[MoveTask, ...] = ()

    def running(self) -> MoveTask | None:
        """The task that is not over yet; there is at most one, and it is the newest."""
        return self.tasks[0] if self.tasks and self.tasks[0].active else None

    def find(self, task_id: str) -> MoveTask | None:
        """A task by its id."""
        return next((task for task in self.tasks if task.task_id == task_id), None)

    def begun(self, task: MoveTask) -> MoveHistory:
        """With a new task; the oldest falls out."""
        return msgspec.structs.replace(self, tasks=(task, *self.tasks)[:MOVE_TASKS_LISTED])

    def changed(self, task_id: str, **changes: Any) -> MoveHistory:
        """With one task changed."""
        return msgspec.structs.replace(
            self,
            tasks=tuple(
                msgspec.structs.replace(task, **changes) if task.task_id == task_id else task
                for task in self.tasks
            ),
        )


_encoder = msgspec.json.Encoder()
_reader: DocumentReader[MoveHistory] = DocumentReader(MoveHistory)


def key_of(native_name: str) -> str:
    """The key of a source's tasks."""
    return PREFIX + native_name


def encode(history: MoveHistory) -> bytes:
    """The bytes to store."""
    return _encoder.encode(history)


def decode(stored: bytes) -> MoveHistory:
    """Decodes a stored history; raises `msgspec.ValidationError` on anything else."""
    return _reader.decode(stored)


def history_of(context: Context, queue: ResolvedQueue) -> tuple[MoveHistory, int]:
    """The tasks of this incarnation of a source, and the version of their entry."""
    entry: Entry | None = context.metadata.get(key_of(queue.native_name))
    if entry is None:
        return MoveHistory(queue_id=queue.queue_id), ABSENT
    history = decode(entry.value)
    if history.queue_id != queue.queue_id:
        history = MoveHistory(queue_id=queue.queue_id)
    return history, entry.version


def own_queue(context: Context, text: str, parameter: str) -> QueueArn:
    """The queue of the caller that an ARN names; move tasks never cross accounts or regions."""
    arn = parse_arn(text)
    if arn is None:
        raise invalid_parameter(
            f"You must use this format to specify the {parameter}: "
            "arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
        )
    if (arn.account, arn.region) != (context.session.account, context.session.region):
        raise resource_not_found(parameter)
    return arn
