"""ChangeMessageVisibility and ChangeMessageVisibilityBatch."""

from __future__ import annotations

from typing import cast

from penstock.frontend.batching.settling import Outcome, Settlement, Settling
from penstock.frontend.context import Context
from penstock.frontend.messages.receipt_handle import ReceiptHandle, read_handle
from penstock.model.limits import SECOND_MS
from penstock.sqs import parameters
from penstock.sqs.errors import SqsError
from penstock.sqs.messages.batches import check_entries, failed_entry
from penstock.sqs.refusals import expired_receipt_handle, message_not_available
from penstock.sqs.shapes.batches import (
    BatchResultErrorEntry,
    ChangeMessageVisibilityBatchRequest,
    ChangeMessageVisibilityBatchResult,
    ChangeMessageVisibilityBatchResultEntry,
)
from penstock.sqs.shapes.messages import ChangeMessageVisibilityRequest
from penstock.steps.step import Ask, Steps
from penstock.wire.messages import Extend, Receipt, Release


def change_message_visibility(context: Context) -> Steps[None]:
    """Keeps a message for so long from now, or with 0 gives it back at once."""
    request = cast(ChangeMessageVisibilityRequest, context.call.parameters)
    handle = request.receipt_handle
    seconds = parameters.required_visibility_timeout(request.visibility_timeout, context.compatibility)
    outcomes = yield from _change(context, {handle: read_handle(handle, context.queue.queue_id)}, seconds)
    _raise_if_not_done(context, handle, outcomes[handle])


def change_message_visibility_batch(context: Context) -> Steps[ChangeMessageVisibilityBatchResult]:
    """The same for up to ten messages; each may fail alone."""
    entries = cast(ChangeMessageVisibilityBatchRequest, context.call.parameters).entries
    check_entries("ChangeMessageVisibilityBatch", entries)
    failed: list[BatchResultErrorEntry] = []
    changes: dict[int, dict[str, ReceiptHandle]] = {}
    asked: list[tuple[str, str, int]] = []
    for entry in entries:
        try:
            seconds = parameters.required_visibility_timeout(entry.visibility_timeout, context.compatibility)
            handle = read_handle(entry.receipt_handle, context.queue.queue_id)
        except SqsError as error:
            failed.append(failed_entry(entry.id, error))
        else:
            changes.setdefault(seconds, {})[entry.receipt_handle] = handle
            asked.append((entry.id, entry.receipt_handle, seconds))
    outcomes: dict[int, dict[str, Outcome]] = {}
    for seconds, handles in changes.items():
        outcomes[seconds] = yield from _change(context, handles, seconds)
    successful: list[ChangeMessageVisibilityBatchResultEntry] = []
    for entry_id, text, seconds in asked:
        try:
            _raise_if_not_done(context, text, outcomes[seconds][text])
        except SqsError as error:
            failed.append(failed_entry(entry_id, error))
        else:
            successful.append(ChangeMessageVisibilityBatchResultEntry(id=entry_id))
    return ChangeMessageVisibilityBatchResult(successful=successful, failed=failed)


def _change(context: Context, handles: dict[str, ReceiptHandle], seconds: int) -> Steps[dict[str, Outcome]]:
    def request(receipts: list[Receipt]) -> Settlement:
        return Ask(Extend(receipts, seconds * SECOND_MS) if seconds else Release(receipts))

    # An ended lease can still be changed if the message was not received since, except on queues with strict order.
    settling = Settling(after_lease=not context.queue.traits.fifo)
    for text, handle in handles.items():
        settling.add(text, handle)
    return settling.settle(request)


def _raise_if_not_done(context: Context, handle: str, outcome: Outcome) -> None:
    if outcome.error is not None:
        raise outcome.error
    if outcome.stale and context.queue.traits.fifo:
        raise expired_receipt_handle(handle)
    if not outcome.done:
        raise message_not_available(handle)
