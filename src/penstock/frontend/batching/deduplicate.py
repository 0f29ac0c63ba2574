"""Deduplication: what the engine compares of a message on a FIFO queue.

The engine remembers one id a message for the queue's window. In the scope of a group the id is made of group and
id together, and what the sender gave is kept beside it, because receivers ask for it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.sqs.attributes.queue_attributes import DeduplicationScope
from penstock.sqs.messages.outgoing import OutgoingMessage

GIVEN_ID = "MessageDeduplicationId"
"""The name under which the sender's id is kept where the engine's differs."""


WITHIN_GROUP = b"\0"
"""Begins an id that has its group in it: nobody looks for it in the partitions of other groups."""


class DeduplicationKey(NamedTuple):
    """What is compared, and what must be kept for the receiver (None: what is compared says it all)."""

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
