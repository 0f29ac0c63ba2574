"""Batches: the checks that fail a whole request, in the order the service makes them, and those that do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from penstock.sqs.compatibility import BATCH_BYTES, BATCH_ENTRIES, Compatibility
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.messages.outgoing import OutgoingMessage, QueueTraits, check_message, message_bytes
from penstock.sqs.refusals import invalid_parameter, missing_parameter, no_deduplication_id
from penstock.sqs.shapes.batches import (
    BatchEntry,
    BatchResultErrorEntry,
    SendMessageBatchRequestEntry,
    SendMessageBatchResultEntry,
)

_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class CheckedBatch(NamedTuple):
    """A batch of sends: the messages for the engine, by entry id and in order, and the entries that failed before."""

    messages: list[tuple[str, OutgoingMessage]]
    failed: list[BatchResultErrorEntry]


def check_entries(action: str, entries: Sequence[BatchEntry]) -> None:
    """Raises unless a batch of any action has 1 to 10 entries with good and different ids."""
    if not entries:
        raise SqsError(
            ErrorKind.EMPTY_BATCH_REQUEST,
            f"There should be at least one {action}RequestEntry in the request.",
        )
    if len(entries) > BATCH_ENTRIES:
        raise SqsError(
            ErrorKind.TOO_MANY_ENTRIES_IN_BATCH_REQUEST,
            f"Maximum number of entries per request are {BATCH_ENTRIES}. You have sent {len(entries)}.",
        )
    ids = [entry.id for entry in entries]
    if not all(map(_ID.fullmatch, ids)):
        raise SqsError(
            ErrorKind.INVALID_BATCH_ENTRY_ID,
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
            "It can be at most 80 letters long.",
        )
    if len(set(ids)) < len(ids):
        repeated = next(one for place, one in enumerate(ids) if one in ids[:place])
        raise SqsError(ErrorKind.BATCH_ENTRY_IDS_NOT_DISTINCT, f"Id {repeated} repeated.")


def check_send_batch(
    entries: Sequence[SendMessageBatchRequestEntry],
    traits: QueueTraits,
    compatibility: Compatibility,
    trace_header: str | None = None,
    *,
    escapes: bool = True,
) -> CheckedBatch:
    """Raises what fails the whole of SendMessageBatch, and sorts out the entries that fail alone."""
    check_entries("SendMessageBatch", entries)
    if _may_be_too_long(entries) and (total := sum(map(message_bytes, entries))) > BATCH_BYTES:
        raise SqsError(
            ErrorKind.BATCH_REQUEST_TOO_LONG,
            f"Batch requests cannot be longer than {BATCH_BYTES} bytes. You have sent {total} bytes.",
        )
    if traits.fifo:
        _check_fifo_entries(entries, traits)
    messages: list[tuple[str, OutgoingMessage]] = []
    failed: list[BatchResultErrorEntry] = []
    for entry in entries:
        try:
            messages.append(
                (entry.id, check_message(entry, traits, compatibility, trace_header, escapes=escapes))
            )
        except SqsError as error:
            failed.append(failed_entry(entry.id, error))
    return CheckedBatch(messages, failed)


def _may_be_too_long(entries: Sequence[SendMessageBatchRequestEntry]) -> bool:
    """No character has more than four bytes, so that small batches need not be counted exactly."""
    characters = 0
    for entry in entries:
        if entry.message_attributes:
            return True
        characters += len(entry.message_body)
    return 4 * characters > BATCH_BYTES


def _check_fifo_entries(entries: Sequence[SendMessageBatchRequestEntry], traits: QueueTraits) -> None:
    for entry in entries:
        if entry.message_group_id is None:
            # A single send without a group is a MissingParameter with these words; a batch is not.
            raise invalid_parameter(missing_parameter("MessageGroupId").message)
    for entry in entries:
        if entry.message_deduplication_id is None and not traits.content_based_deduplication:
            raise no_deduplication_id()


def failed_entry(entry_id: str, error: SqsError) -> BatchResultErrorEntry:
    """How a batch reports an entry that failed alone."""
    return BatchResultErrorEntry(
        id=entry_id, sender_fault=error.sender_fault, code=error.query_code, message=error.message
    )


def sent_entry(
    entry_id: str, message: OutgoingMessage, message_id: str, sequence_number: str | None
) -> SendMessageBatchResultEntry:
    """How a batch reports a message that was sent."""
    return SendMessageBatchResultEntry(
        id=entry_id,
        message_id=message_id,
        md5_of_message_body=message.body_md5,
        md5_of_message_attributes=message.attributes_md5,
        md5_of_message_system_attributes=message.system_attributes_md5,
        sequence_number=sequence_number,
    )
