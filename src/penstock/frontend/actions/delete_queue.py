"""DeleteQueue: first the engine's queue, then its metadata.

If a process dies in between, the metadata that remains belongs to an incarnation that no longer exists. It is ignored, and
the next CreateQueue of that name overwrites it.
"""

from __future__ import annotations

import msgspec

from penstock.frontend.context import Context
from penstock.frontend.move_tasks import task
from penstock.frontend.queues.metadata import decode, key_of
from penstock.frontend.queues.recently_deleted import mark
from penstock.metadata.store.interface import VersionConflictError
from penstock.sqs.compatibility import STRICT
from penstock.steps.asking import ask, remove
from penstock.steps.step import Steps
from penstock.wire.messages import DeleteQueue, Done


def delete_queue(context: Context) -> Steps[None]:
    """The queue and all its messages are gone."""
    queue = yield from context.queues.again(context.queue, context.now_ms)
    native = queue.native_name
    try:
        yield from ask(DeleteQueue(native, queue.queue_id), Done)
    finally:
        context.queues.forget(native)
    if context.compatibility == STRICT:
        yield from mark(context, native)
    entry = context.metadata.get(key_of(native))
    if entry is not None and decode(entry.value).queue_id <= queue.queue_id:
        yield from _remove(entry.key, entry.version)
    moves = context.metadata.get(task.key_of(native))
    if moves is not None and _is_over(moves.value, queue.queue_id):
        yield from _remove(moves.key, moves.version)


def _is_over(stored: bytes, queue_id: int) -> bool:
    """Whether tasks are those of the deleted queue; unreadable ones belong to no queue."""
    try:
        return task.decode(stored).queue_id <= queue_id
    except msgspec.MsgspecError:
        return True


def _remove(key: str, version: int) -> Steps[None]:
    try:
        yield from remove(key, version)
    except VersionConflictError:
        return  # it is another queue's already, or gone
