"""Messages as users send them, and their encoding as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from penstock.client.connection.failure import refused
from penstock.client.duration import Duration, microseconds_since_1970, milliseconds
from penstock.model import limits
from penstock.model.batch import HEADER_BYTES, UNSET, encode_parts
from penstock.model.errors import ErrorCode, PenstockError

T = TypeVar("T")

Body = bytes | bytearray | memoryview | str
"""A message body; text travels as UTF-8."""

AttributeValue = str | int | float | bool | bytes
"""The values that an attribute of a message may have."""


class OutgoingMessage(msgspec.Struct, frozen=True):
    """A message to send, with everything that it needs besides its body.

    Use plain `bytes` or `str` for a message with only a body; it is faster. Durations are seconds or `timedelta`; None
    means the queue's settings.
    """

    body: Body
    attributes: Mapping[str, AttributeValue] | None = None
    delay: Duration | None = None
    """Not delivered before this has passed."""
    ttl: Duration | None = None
    """Expires when this has passed."""
    priority: int | None = None
    """0 (least) to 9."""
    group: str | bytes | None = None
    """Strict order inside a group on a FIFO queue; a fair share per group on others."""
    deduplication_id: str | bytes | None = None
    """Sent again within the queue's deduplication window, the message is not stored again."""
    timestamp: datetime | float | None = None
    """When the event of the message happened, with a time zone or in seconds since 1970: its position on a queue that is
    ordered by its producers' stamps. None: the client stamps it, if the queue needs stamps.
    """


Sendable = Body | OutgoingMessage
"""What can be sent: a body, or a message with a body and options."""
_BODIES = frozenset({bytes, str, bytearray, memoryview})


def encode_outgoing(messages: Sequence[Sendable], stamps_us: Sequence[int] | None = None) -> bytes:
    """One encoded batch; raises when a message or the batch breaks a limit that needs no server to know.

    `stamps_us`: a time for each message, where they do not share one.
    """
    if not 1 <= len(messages) <= limits.BATCH_MESSAGES:
        raise PenstockError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{len(messages)} messages in a batch; send 1 to {limits.BATCH_MESSAGES} at once, or use queue.producer()",
        )
    payload = _encode_plain(messages, stamps_us)
    if payload is None:
        payload = _encode_columns([_normal(message) for message in messages], stamps_us)
    if len(payload) > limits.BATCH_BYTES:
        raise PenstockError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {len(payload)} bytes; send at most {limits.BATCH_BYTES} at once, or use queue.producer()",
        )
    return payload


def _encode_plain(messages: Sequence[Any], stamps_us: Sequence[int] | None) -> bytes | None:
    """The batch if all messages are bytes; None if any is something else, or counts otherwise than in bytes.

    Trying costs nothing where it succeeds; looking at the type of each first costs half as much again.
    """
    try:
        payload = encode_parts(messages, stamps_us=stamps_us)
    except TypeError:
        return None
    body_bytes = int.from_bytes(payload[HEADER_BYTES - 4 : HEADER_BYTES], "little")
    message_bytes = 4 if stamps_us is None else 12
    return payload if len(payload) == HEADER_BYTES + message_bytes * len(messages) + body_bytes else None


def prepared(message: Sendable) -> tuple[Sendable, int]:
    """The message in its quickest form and about its size in a batch; raises when it cannot be sent at all."""
    if isinstance(message, OutgoingMessage):
        if message != OutgoingMessage(message.body):
            given_time_us(message)  # raises where it is none
            return message, len(_encode_columns([message], None))
        message = message.body
    body = _body(message)
    return body, len(body)


def bring_times(messages: Sequence[Sendable]) -> bool:
    """Whether any of the messages may bring a time along."""
    return not _BODIES.issuperset(map(type, messages))


def given_time_us(message: Sendable) -> int | None:
    """The time that a message brings along, in microseconds since 1970."""
    if not isinstance(message, OutgoingMessage) or message.timestamp is None:
        return None
    return microseconds_since_1970(message.timestamp, "timestamp")


def _normal(message: Sendable) -> OutgoingMessage:
    if isinstance(message, OutgoingMessage):
        return message
    return OutgoingMessage(message)


def _encode_columns(messages: list[OutgoingMessage], stamps_us: Sequence[int] | None) -> bytes:
    return encode_parts(
        [_body(message.body) for message in messages],
        priorities=_column([message.priority for message in messages], _priority, 0),
        delays_ms=_column([message.delay for message in messages], _delay, UNSET),
        ttls_ms=_column([message.ttl for message in messages], _ttl, UNSET),
        groups=_column([message.group for message in messages], _group, b""),
        deduplication_ids=_column([message.deduplication_id for message in messages], _deduplication_id, b""),
        attributes=_column([message.attributes or None for message in messages], encode_attributes, b""),
        stamps_us=stamps_us,
    )


def _column(values: Sequence[object], encode: Callable[[Any], T], unset: T) -> list[T] | None:
    """The encoded values of one field, or None when no message has it."""
    if all(value is None for value in values):
        return None
    return [unset if value is None else encode(value) for value in values]


def _body(body: object) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    raise TypeError(f"a message body must be bytes or str, not {type(body).__name__}")


def _priority(priority: int) -> int:
    if 0 <= priority < limits.PRIORITIES:
        return priority
    raise refused(f"priority {priority} is not between 0 and {limits.PRIORITIES - 1}")


def _delay(delay: Duration) -> int:
    return milliseconds(delay, "delay")


def _ttl(ttl: Duration) -> int:
    return milliseconds(ttl, "ttl")


def _group(group: str | bytes) -> bytes:
    return name_bytes(group, "group", limits.GROUP_BYTES)


def _deduplication_id(identifier: str | bytes) -> bytes:
    return name_bytes(identifier, "deduplication_id", limits.DEDUPLICATION_ID_BYTES)


def name_bytes(name: str | bytes, what: str, most: int) -> bytes:
    """A group or deduplication id as it travels."""
    encoded = name.encode("utf-8", "surrogateescape") if isinstance(name, str) else bytes(name)
    if not 1 <= len(encoded) <= most:
        raise refused(f"a {what} of {len(encoded)} bytes; use 1 to {most}")
    return encoded


def encode_attributes(attributes: Mapping[str, AttributeValue]) -> bytes:
    """The attributes of one message as they travel: a msgpack map."""
    if len(attributes) > limits.ATTRIBUTES_PER_MESSAGE:
        raise refused(
            f"{len(attributes)} attributes on one message; use at most {limits.ATTRIBUTES_PER_MESSAGE}"
        )
    given: dict[Any, Any] = dict(attributes)
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, (str, int, float, bytes)):
            raise TypeError(f"attribute {name!r}: names are str, values str, int, float, bool or bytes")
    try:
        encoded = msgspec.msgpack.encode(given)
    except OverflowError:
        raise refused("an attribute holds an integer of more than 64 bits; send it as text") from None
    if len(encoded) > limits.ATTRIBUTES_BYTES:
        raise refused(
            f"{len(encoded)} bytes of attributes on one message; use at most {limits.ATTRIBUTES_BYTES}"
        )
    return encoded
