"""Shapes of the batch actions. Class names of entries are also the names of their XML elements."""

from __future__ import annotations

from msgspec import Struct, field

from penstock.sqs.shapes.kinds import Integer, QueueRequest, Result
from penstock.sqs.shapes.messages import MessageAttributeValue


class BatchEntry(Struct, frozen=True, kw_only=True, rename="pascal"):
    """What every entry of a batch has."""

    id: str = ""


class SendMessageBatchRequestEntry(BatchEntry, frozen=True, kw_only=True):
    """One message of SendMessageBatch."""

    message_body: str = ""
    delay_seconds: Integer | None = None
    message_attributes: dict[str, MessageAttributeValue] = field(default_factory=dict)
    message_system_attributes: dict[str, MessageAttributeValue] = field(default_factory=dict)
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class DeleteMessageBatchRequestEntry(BatchEntry, frozen=True, kw_only=True):
    """One receipt of DeleteMessageBatch."""

    receipt_handle: str = ""


class ChangeMessageVisibilityBatchRequestEntry(BatchEntry, frozen=True, kw_only=True):
    """One receipt of ChangeMessageVisibilityBatch."""

    receipt_handle: str = ""
    visibility_timeout: Integer | None = None


class SendMessageBatchRequest(QueueRequest, frozen=True, kw_only=True):
    """SendMessageBatch."""

    entries: list[SendMessageBatchRequestEntry] = field(default_factory=list)


class DeleteMessageBatchRequest(QueueRequest, frozen=True, kw_only=True):
    """DeleteMessageBatch."""

    entries: list[DeleteMessageBatchRequestEntry] = field(default_factory=list)


class ChangeMessageVisibilityBatchRequest(QueueRequest, frozen=True, kw_only=True):
    """ChangeMessageVisibilityBatch."""

    entries: list[ChangeMessageVisibilityBatchRequestEntry] = field(default_factory=list)


class BatchResultErrorEntry(Result, frozen=True, kw_only=True):
    """One entry that failed, of any batch."""

    id: str
    sender_fault: bool
    code: str
    message: str | None = None


class SendMessageBatchResultEntry(Result, frozen=True, kw_only=True):
    """One message that was sent."""

    id: str
    message_id: str
    md5_of_message_body: str = field(name="MD5OfMessageBody")
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    md5_of_message_system_attributes: str | None = field(default=None, name="MD5OfMessageSystemAttributes")
    sequence_number: str | None = None


class DeleteMessageBatchResultEntry(Result, frozen=True, kw_only=True):
    """One message that was deleted."""

    id: str


class ChangeMessageVisibilityBatchResultEntry(Result, frozen=True, kw_only=True):
    """One message whose visibility was changed."""

    id: str


class SendMessageBatchResult(Result, frozen=True, kw_only=True):
    """SendMessageBatch's answer."""

    successful: list[SendMessageBatchResultEntry] = field(default_factory=list)
    failed: list[BatchResultErrorEntry] = field(default_factory=list)


class DeleteMessageBatchResult(Result, frozen=True, kw_only=True):
    """DeleteMessageBatch's answer."""

    successful: list[DeleteMessageBatchResultEntry] = field(default_factory=list)
    failed: list[BatchResultErrorEntry] = field(default_factory=list)


class ChangeMessageVisibilityBatchResult(Result, frozen=True, kw_only=True):
    """ChangeMessageVisibilityBatch's answer."""

    successful: list[ChangeMessageVisibilityBatchResultEntry] = field(default_factory=list)
    failed: list[BatchResultErrorEntry] = field(default_factory=list)
