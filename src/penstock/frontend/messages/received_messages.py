"""The engine's deliveries in the form of SQS."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from penstock.frontend.batching.outgoing_batch import GIVEN_ID, SENDER_ID
from penstock.frontend.messages.message_id import message_ids
from penstock.frontend.messages.receipt_handle import encode_handles
from penstock.frontend.queues.native_names import DefaultAccount, arn_of
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.model.batch import ATTRIBUTES, DEDUPLICATION, GROUPS, STAMPS, Batch, Buffer
from penstock.ordering.timestamp_id import TimestampId
from penstock.sqs.messages.bodies import attributes_md5, body_md5
from penstock.sqs.messages.message_attributes import selected_attributes, selected_system_attributes
from penstock.sqs.messages.stored_attributes import StoredAttributes, decode_attributes
from penstock.sqs.shapes.messages import Message
from penstock.wire.messages import DeliveredBatch

DEAD_LETTER_REASON = "Penstock.DeadLetterReason"
TIMESTAMP_ID = "Penstock.TimestampId"
LATENESS = "Penstock.LatenessMicroseconds"
SHOULD_PRECEDE = "Penstock.ShouldHavePreceded"
BODY_ENCODING = "Penstock.BodyEncoding"
"""Given where a body is no text, because a native producer sent bytes: it is shown in Base64."""

_NO_ATTRIBUTES = StoredAttributes({}, {})


class MessageView:
    """The fields that one receiver requested: chosen once, applied to each message."""

    def __init__(
        self,
        queue: ResolvedQueue,
        home: DefaultAccount,
        system_names: Sequence[str],
        attribute_names: Sequence[str],
        *,
        extensions: bool,
    ) -> None:
        self._queue = queue
        self._home = home
        self._system_names = frozenset(system_names)
        self._attribute_names = attribute_names
        self._extensions = extensions

    def messages(self, batches: Sequence[DeliveredBatch], body: Buffer, token: bytes | None) -> list[Message]:
        """The messages of a delivery, or with no token of a peek: those have no receipt handle."""
        messages: list[Message] = []
        view = memoryview(body)
        start = 0
        for head in batches:
            self._add_run(messages, head, Batch(view[start : start + head.size]), token)
            start += head.size
        return messages

    def _add_run(
        self, messages: list[Message], head: DeliveredBatch, batch: Batch, token: bytes | None
    ) -> None:
        count = head.count
        counts = head.receive_counts
        if isinstance(counts, int):
            counts = [counts] * count
        identities = message_ids(self._queue.queue_id, head.first, count, head.origin)
        handles = encode_handles(token, head.first, counts) if token is not None else [None] * count
        # Most messages: a body without attributes. A user's message always has the sender's attribute.
        plain = not self._system_names and not (self._attribute_names and batch.columns & ATTRIBUTES)
        for index, content in enumerate(batch.bodies()):
            encoding: str | None = None
            try:
                text = content.decode()
            except UnicodeDecodeError:
                content = b64encode(content)
                text, encoding = content.decode(), "base64"
            digest = body_md5(content)
            if plain:
                messages.append(
                    Message(
                        message_id=identities[index],
                        receipt_handle=handles[index],
                        md5_of_body=digest,
                        body=text,
                    )
                )
                continue
            stored = (
                decode_attributes(batch.attributes(index)) if batch.columns & ATTRIBUTES else _NO_ATTRIBUTES
            )
            attributes = (
                selected_attributes(stored.attributes, self._attribute_names)
                if stored.attributes and self._attribute_names
                else {}
            )
            system = (
                self._system(head, batch, index, counts[index], stored, encoding)
                if self._system_names
                else {}
            )
            messages.append(
                Message(
                    message_id=identities[index],
                    receipt_handle=handles[index],
                    md5_of_body=digest,
                    body=text,
                    attributes=system,
                    md5_of_message_attributes=attributes_md5(attributes),
                    message_attributes=attributes,
                )
            )

    def _system(
        self,
        head: DeliveredBatch,
        batch: Batch,
        index: int,
        received: int,
        stored: StoredAttributes,
        encoding: str | None,
    ) -> dict[str, str]:
        """Every system attribute that the message has, cut down to those asked for."""
        queue = self._queue
        origin = head.origin
        first_received = head.first_received_ms
        sent_ms = head.sent_ms
        values = {"SenderId": stored.system.get(SENDER_ID, queue.arn.account)}
        if origin is not None and origin.reason != "redrive":
            # A dead letter continues its count, and on a standard queue it keeps its age.
            received += origin.receive_counts[index]
            if not queue.traits.fifo:
                sent_ms = origin.sent_ms
            source = arn_of(self._home, origin.source)
            if source is not None:
                values["DeadLetterQueueSourceArn"] = str(source)
            if self._extensions:
                values[DEAD_LETTER_REASON] = origin.reason
        values["SentTimestamp"] = str(sent_ms)
        values["ApproximateReceiveCount"] = str(received)
        values["ApproximateFirstReceiveTimestamp"] = str(
            first_received if isinstance(first_received, int) else first_received[index]
        )
        groups = batch.names(GROUPS)
        if groups is not None and groups[index]:
            values["MessageGroupId"] = groups[index].decode(errors="replace")
        if queue.traits.fifo:
            values["SequenceNumber"] = f"{head.first + index:020d}"
            identifiers = batch.names(DEDUPLICATION)
            kept = stored.system.get(GIVEN_ID)
            if kept is not None:
                values["MessageDeduplicationId"] = kept
            elif identifiers is not None and identifiers[index]:
                values["MessageDeduplicationId"] = identifiers[index].decode(errors="replace")
        if (trace := stored.system.get("AWSTraceHeader")) is not None:
            values["AWSTraceHeader"] = trace
        if self._extensions:
            values |= _stamped(head, batch, index)
            if encoding is not None:
                values[BODY_ENCODING] = encoding
        return selected_system_attributes(values, self._system_names)


def _stamped(head: DeliveredBatch, batch: Batch, index: int) -> dict[str, str]:
    """The stamp of a message, and its lateness."""
    stamps = batch.integers(STAMPS)
    stamp_us = head.stamp_us if stamps is None else stamps[index]
    if not stamp_us:
        return {}
    values = {TIMESTAMP_ID: TimestampId(stamp_us, head.process, head.counter + index).to_text()}
    late = head.origin.late if head.origin is not None else None
    if late is not None:
        values[LATENESS] = str(late.floor_us - stamp_us)
        if late.precedes is not None:
            values[SHOULD_PRECEDE] = late.precedes
    return values
