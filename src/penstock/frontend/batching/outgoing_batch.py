"""Checked messages as one batch of the engine: only the needed columns, and the deduplication ids of a FIFO queue.

The engine remembers one deduplication id for each message in the queue's window. If the scope is the group, the id is made
of the group and the sender's id, and the sender's id is stored beside it, because receivers may ask for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.frontend.session import Session
from penstock.model.batch import UNSET, encode_parts
from penstock.model.limits import SECOND_MS
from penstock.sqs.attributes.queue_attributes import DeduplicationScope
from penstock.sqs.messages.extensions import SESSION, TIMESTAMP
from penstock.sqs.messages.outgoing import OutgoingMessage
from penstock.sqs.messages.stored_attributes import encode_attributes
from penstock.sqs.refusals import invalid_parameter

GIVEN_ID = "MessageDeduplicationId"
"""The name under which the sender's id is kept where the engine's differs."""


WITHIN_GROUP = b"\0"
"""The prefix of an id that includes its group: partitions of other groups need not look for it."""


class DeduplicationKey(NamedTuple):
    """The id to compare, and the one to store for the receiver (None: the same)."""

    compared: bytes
    kept: str | None


NO_KEY = DeduplicationKey(b"", None)


def deduplication_scope(queue: ResolvedQueue | None) -> DeduplicationScope:
    """Step 6, deduplicate: by what messages that are sent to a queue are compared with earlier ones."""
    return "queue" if queue is None else queue.attributes.deduplication_scope


def deduplication_key(message: OutgoingMessage, scope: DeduplicationScope) -> DeduplicationKey:
    """The key of a message that passed every check."""
    given = message.deduplication_id
    if given is None:
        return NO_KEY
    if scope == "queue":
        return DeduplicationKey(given.encode(), None)
    group = (message.group_id or "").encode()
    together = len(group).to_bytes(2, "little") + group + given.encode()
    return DeduplicationKey(WITHIN_GROUP + sha256(together).hexdigest().encode(), given)


SENDER_ID = "SenderId"


def encode_alone(message: OutgoingMessage, session: Session) -> bytes:
    """The attributes of a message that is nothing but a body and those; see `OutgoingMessage.unbound`."""
    system, sender = message.system, session.sender_id
    if not (system or message.attributes):
        return b"" if sender is None else _sender_alone(sender)
    if sender is not None:
        system = {**system, SENDER_ID: sender}
    return encode_attributes(message.attributes, system)


@lru_cache(maxsize=1024)
def _sender_alone(sender: str) -> bytes:
    """The attributes that most messages of a user have: 0.1 µs a message instead of 0.5."""
    return encode_attributes({}, {SENDER_ID: sender})


def encode_messages(
    messages: Sequence[OutgoingMessage], session: Session, scope: DeduplicationScope
) -> bytes:
    """The batch as it is sent to the engine and stored."""
    sender = session.sender_id
    priorities: list[int] | None = None
    delays: list[int] | None = None
    ttls: list[int] | None = None
    groups: list[bytes] | None = None
    identifiers: list[bytes] | None = None
    attributes: list[bytes] | None = None
    last = len(messages)
    for index, message in enumerate(messages):
        system = message.system
        if sender is not None:
            system = {**system, SENDER_ID: sender}
        if message.deduplication_id is not None:
            identifier, kept = deduplication_key(message, scope)
            if kept is not None:
                system = {**system, GIVEN_ID: kept}
            if identifiers is None:
                identifiers = [b""] * last
            identifiers[index] = identifier
        if message.group_id is not None:
            if groups is None:
                groups = [b""] * last
            groups[index] = message.group_id.encode()
        if message.delay_seconds is not None:
            if delays is None:
                delays = [UNSET] * last
            delays[index] = message.delay_seconds * SECOND_MS
        priority, ttl_ms, _, _ = message.extensions
        if priority is not None:
            if priorities is None:
                priorities = [0] * last
            priorities[index] = priority
        if ttl_ms is not None:
            if ttls is None:
                ttls = [UNSET] * last
            ttls[index] = ttl_ms
        if message.attributes or system:
            if attributes is None:
                attributes = [b""] * last
            attributes[index] = encode_attributes(message.attributes, system)
    return encode_parts(
        [message.body for message in messages],
        priorities=priorities,
        delays_ms=delays,
        ttls_ms=ttls,
        groups=groups,
        deduplication_ids=identifiers,
        attributes=attributes,
        stamps_us=_stamps(messages),
    )


def _stamps(messages: Sequence[OutgoingMessage]) -> list[int] | None:
    """When producers made the messages; all of a batch say it or none does."""
    stamps = [message.extensions.timestamp_us for message in messages]
    given = [stamp for stamp in stamps if stamp is not None]
    if not given:
        return None
    if len(given) < len(stamps):
        raise invalid_parameter(f"{TIMESTAMP} must be set on all messages of a batch or on none.")
    return given


def process_of(messages: Sequence[OutgoingMessage], session: Session) -> int:
    """The process number of the stamps: of their session, or of the user."""
    if messages[0].extensions.timestamp_us is None:
        return 0
    names = {message.extensions.session for message in messages}
    if len(names) > 1:
        raise invalid_parameter(f"All messages of a batch must have the same {SESSION}.")
    name = f"{session.sender_id}\n{names.pop()}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])
