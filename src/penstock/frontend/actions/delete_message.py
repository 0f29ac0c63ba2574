"""DeleteMessage and DeleteMessageBatch."""

from __future__ import annotations

from functools import partial
from typing import cast

from penstock.frontend.batching.settling import Outcome, Settling
from penstock.frontend.context import Context
from penstock.frontend.messages.receipt_handle import read_handle
from penstock.sqs.errors import SqsError
from penstock.sqs.messages.batches import check_entries, failed_entry
from penstock.sqs.refusals import expired_receipt_handle
from penstock.sqs.shapes.batches import (
    BatchResultErrorEntry,
    DeleteMessageBatchRequest,
    DeleteMessageBatchResult,
    DeleteMessageBatchResultEntry,
)
from penstock.sqs.shapes.messages import DeleteMessageRequest
from penstock.steps.step import DeleteTogether, Steps


def delete_message(context: Context) -> Steps[None]:
    """Done with one message. Deleting again is no error, nor is a receipt that was too late on a standard queue."""
    handle = cast(DeleteMessageRequest, context.call.parameters).receipt_handle
    settling = _settling(context)
    settling.add(handle, read_handle(handle, context.queue.queue_id))
    outcomes = yield from settling.settle(partial(DeleteTogether, context.queue.queue_id))
    error = _error_of(context, handle, outcomes[handle])
    if error is not None:
        raise error


def delete_message_batch(context: Context) -> Steps[DeleteMessageBatchResult]:
    """Done with up to ten messages; each may fail alone."""
    entries = cast(DeleteMessageBatchRequest, context.call.parameters).entries
    check_entries("DeleteMessageBatch", entries)
    settling = _settling(context)
    queue_id = context.queue.queue_id
    failed: list[BatchResultErrorEntry] = []
    bad: set[str] = set()
    for entry in entries:
        try:
            settling.add(entry.receipt_handle, read_handle(entry.receipt_handle, queue_id))
        except SqsError as error:
            bad.add(entry.id)
            failed.append(failed_entry(entry.id, error))
    outcomes = yield from settling.settle(partial(DeleteTogether, context.queue.queue_id))
    successful: list[DeleteMessageBatchResultEntry] = []
    for entry in entries:
        if entry.id in bad:
            continue
        outcome = outcomes[entry.receipt_handle]
        failure = None if outcome.done else _error_of(context, entry.receipt_handle, outcome)
        if failure is None:
            successful.append(DeleteMessageBatchResultEntry(id=entry.id))
        else:
            failed.append(failed_entry(entry.id, failure))
    return DeleteMessageBatchResult(successful=successful, failed=failed)


def _settling(context: Context) -> Settling:
    # Strict order leaves no room for a consumer that comes back late: the next one may be at work already.
    return Settling(after_lease=not context.queue.traits.fifo, together=True)


def _error_of(context: Context, handle: str, outcome: Outcome) -> SqsError | None:
    if outcome.stale and context.queue.traits.fifo:
        return expired_receipt_handle(handle)
    return outcome.error
