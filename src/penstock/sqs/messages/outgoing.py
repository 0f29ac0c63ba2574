"""One message to be sent: every check, and the values that the engine and the answer need."""

from __future__ import annotations

import hashlib

import msgspec

from penstock.sqs import parameters
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.messages.bodies import attributes_md5, body_md5, is_allowed
from penstock.sqs.messages.extensions import NO_EXTENSIONS, Extensions, read_extensions
from penstock.sqs.messages.message_attributes import (
    TRACE_HEADER,
    attributes_bytes,
    check_message_attributes,
    check_system_attributes,
)
from penstock.sqs.refusals import (
    WRONG_QUEUE_TYPE,
    entry_too_long,
    invalid_characters,
    invalid_parameter,
    message_too_long,
    missing_parameter,
    no_deduplication_id,
    wrong_for_queue_type,
)
from penstock.sqs.shapes.batches import SendMessageBatchRequestEntry
from penstock.sqs.shapes.messages import MessageAttributeValue, SendMessageRequest

Sendable = SendMessageRequest | SendMessageBatchRequestEntry


class QueueTraits(msgspec.Struct, frozen=True):
    """The properties of its queue that a send needs."""

    fifo: bool
    content_based_deduplication: bool
    maximum_message_size: int


class OutgoingMessage(msgspec.Struct, frozen=True):
    """A message that passed every check."""

    body: bytes
    size: int
    """Body and attributes, as the service counts them."""
    attributes: dict[str, MessageAttributeValue]
    system: dict[str, str]
    delay_seconds: int | None
    group_id: str | None
    deduplication_id: str | None
    extensions: Extensions
    body_md5: str
    attributes_md5: str | None
    system_attributes_md5: str | None

    @property
    def unbound(self) -> bool:
        """Whether it asks for nothing that ties it to a time or to other messages: a body, perhaps attributes."""
        return (
            self.group_id is None
            and self.delay_seconds is None
            and self.deduplication_id is None
            and self.extensions == NO_EXTENSIONS
        )


def message_bytes(message: Sendable) -> int:
    """The size of a message as limits count it: body and user attributes, not system attributes."""
    size = len(message.message_body.encode())
    return size + attributes_bytes(message.message_attributes) if message.message_attributes else size


def check_message(
    message: Sendable,
    traits: QueueTraits,
    compatibility: Compatibility,
    trace_header: str | None = None,
    *,
    escapes: bool = True,
) -> OutgoingMessage:
    """Raises what is wrong with a message; `trace_header` is the request's, an own attribute wins over it.

    `escapes` is the call's.
    """
    in_batch = isinstance(message, SendMessageBatchRequestEntry)
    body = message.message_body.encode()
    if not body:
        raise missing_parameter("MessageBody")
    if not is_allowed(body, escapes=escapes):
        raise invalid_characters()
    attributes = message.message_attributes
    size = len(body)
    extensions = NO_EXTENSIONS
    if attributes:
        check_message_attributes(attributes)
        size += attributes_bytes(attributes)
        extensions = read_extensions(attributes, compatibility)
    if size > traits.maximum_message_size:
        limit = traits.maximum_message_size
        raise entry_too_long(limit) if in_batch else message_too_long(limit)
    if (
        message.delay_seconds is None
        and message.message_group_id is None
        and message.message_deduplication_id is None
        and not (traits.fifo or attributes or message.message_system_attributes or trace_header)
    ):
        # Most messages have only a body: 3.6 µs a KiB, 4.1 with all checks one by one.
        return OutgoingMessage(body, size, {}, {}, None, None, None, extensions, body_md5(body), None, None)
    return OutgoingMessage(
        body,
        size,
        attributes,
        _system_attributes(message, trace_header),
        _delay(message, traits, compatibility, in_batch),
        _group(message, traits),
        _deduplication_id(message, traits, body, in_batch),
        extensions,
        body_md5(body),
        attributes_md5(attributes),
        attributes_md5(message.message_system_attributes),
    )


def _system_attributes(message: Sendable, trace_header: str | None) -> dict[str, str]:
    sent = message.message_system_attributes
    if sent:
        check_system_attributes(sent)
        trace_header = sent[TRACE_HEADER].string_value
    return {TRACE_HEADER: trace_header} if trace_header else {}


def _delay(
    message: Sendable, traits: QueueTraits, compatibility: Compatibility, in_batch: bool
) -> int | None:
    delay = parameters.delay_seconds(message.delay_seconds, compatibility)
    if not traits.fifo or delay is None:
        return delay
    if delay > 0:
        raise invalid_parameter(WRONG_QUEUE_TYPE) if in_batch else wrong_for_queue_type(delay, "DelaySeconds")
    return None  # on a FIFO queue 0 means the queue's delay


def _group(message: Sendable, traits: QueueTraits) -> str | None:
    group = parameters.group_id(message.message_group_id)
    if group is None and traits.fifo:
        raise missing_parameter("MessageGroupId")
    return group


def _deduplication_id(message: Sendable, traits: QueueTraits, body: bytes, in_batch: bool) -> str | None:
    given = parameters.deduplication_id(message.message_deduplication_id)
    if not traits.fifo:
        if given is None:
            return None
        if in_batch:
            raise invalid_parameter(WRONG_QUEUE_TYPE)
        raise wrong_for_queue_type(given, "MessageDeduplicationId")
    if given is not None:
        return given
    if not traits.content_based_deduplication:
        raise no_deduplication_id()
    return hashlib.sha256(body).hexdigest()
