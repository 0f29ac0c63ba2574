"""What is recorded of a request, and of those that could not be: one JSON object a line."""

from __future__ import annotations

import msgspec


class UsageEvent(msgspec.Struct, frozen=True, gc=False):
    """One request. It holds no message, no key and no secret."""

    time_ms: int
    user: str
    account: str
    action: str
    queue: str
    """The queue's ARN; empty for an action on no queue."""
    messages: int
    bytes: int
    outcome: str
    """`ok`, or the error code that the caller was given."""
    status: int
    latency_us: int
    request_id: str


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """So many events are missing before this line."""

    time_ms: int
    dropped: int


Line = UsageEvent | Dropped
