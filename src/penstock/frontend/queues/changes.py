"""Changes of a queue's metadata: read, change, write if no other writer was faster, else begin again with the present entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.frontend.context import Context
from penstock.frontend.queues.metadata import QueueMetadata, encode, key_of
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.metadata.store.interface import VersionConflictError
from penstock.sqs.refusals import service_unavailable
from penstock.steps.asking import put
from penstock.steps.step import Steps

ATTEMPTS = 16
"""Each attempt that fails is another caller's that succeeded, so this many rivals at once are served."""


def metadata_of(queue: ResolvedQueue, **changes: Any) -> QueueMetadata:
    """The metadata of a queue, with some of it changed."""
    current = QueueMetadata(
        queue_id=queue.queue_id,
        attributes=queue.attributes,
        tags=queue.tags,
        modified_ms=queue.modified_ms,
        purged_ms=queue.purged_ms,
        later=queue.metadata_later,
    )
    return msgspec.structs.replace(current, **changes)


def write_metadata(queue: ResolvedQueue, metadata: QueueMetadata) -> Steps[bool]:
    """Stores it unless the entry has changed since the queue was looked up; whether it did."""
    try:
        yield from put(key_of(queue.native_name), encode(metadata), queue.metadata_version)
    except VersionConflictError:
        return False
    return True


def change_metadata(context: Context, change: Callable[[ResolvedQueue], QueueMetadata]) -> Steps[None]:
    """Changes the metadata of the queue that an action works on; `change` may refuse by raising."""
    for _ in range(ATTEMPTS):
        queue = yield from context.queues.again(context.queue, context.now_ms)
        if (yield from write_metadata(queue, change(queue))):
            return
    raise too_many_changes()


def too_many_changes() -> Exception:
    """The refusal when others are always faster; SDKs send the request again."""
    return service_unavailable("The queue is being changed by too many requests at once. Please try again.")
