"""DeleteMessage and DeleteMessageBatch."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.receipt_handle import read_handle
from penstock.frontend.settling import Settling
from penstock.frontend.steps import Steps
from penstock.sqs.batches import check_entries, failed_entry
from penstock.sqs.errors import SqsError
from penstock.sqs.refusals import expired_receipt_handle
from penstock.sqs.shapes.batches import (
    BatchResultErrorEntry,
    DeleteMessageBatchRequest,
    DeleteMessageBatchResult,
    DeleteMessageBatchResultEntry,
)
from penstock.sqs.shapes.messages import DeleteMessageRequest
from penstock.wire.messages import Delete


def delete_message(context: Context) -> Steps[None]:
    """Done with one message. Deleting again is no error, nor is a receipt that was too late on a standard queue."""
    handle = cast(DeleteMessageRequest, context.call.parameters).receipt_handle
    settling = _settling(context)
    settling.add(handle, read_handle(handle, context.queue.queue_id))
    outcomes = yield from settling.settle(Delete)
    _raise_if_expired(context, handle, stale=outcomes[handle].stale, error=outcomes[handle].error)


def delete_message_batch(context: Context) -> Steps[DeleteMessageBatchResult]:
    """Done with up to ten messages; each may fail alone."""
    entries = cast(DeleteMessageBatchRequest, context.call.parameters).entries
    check_entries("DeleteMessageBatch", entries)
    settling = _settling(context)
    failed: list[BatchResultErrorEntry] = []
    bad: set[str] = set()
    for entry in entries:
        try:
            settling.add(entry.receipt_handle, read_handle(entry.receipt_handle, context.queue.queue_id))
        except SqsError as error:
            bad.add(entry.id)
            failed.append(failed_entry(entry.id, error))
    outcomes = yield from settling.settle(Delete)
    successful: list[DeleteMessageBatchResultEntry] = []
    for entry in entries:
        if entry.id in bad:
            continue
        outcome = outcomes[entry.receipt_handle]
        try:
            _raise_if_expired(context, entry.receipt_handle, stale=outcome.stale, error=outcome.error)
        except SqsError as error:
            failed.append(failed_entry(entry.id, error))
        else:
            successful.append(DeleteMessageBatchResultEntry(id=entry.id))
    return DeleteMessageBatchResult(successful=successful, failed=failed)


def _settling(context: Context) -> Settling:
    # Strict order leaves no room for a consumer that comes back late: the next one may be at work already.
    return Settling(after_lease=not context.queue.traits.fifo, together=True)


def _raise_if_expired(context: Context, handle: str, *, stale: bool, error: SqsError | None) -> None:
    if error is not None:
        raise error
    if stale and context.queue.traits.fifo:
        raise expired_receipt_handle(handle)
