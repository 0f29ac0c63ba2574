"""What is recorded of a request."""

from __future__ import annotations

import msgspec


class UsageEvent(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One request. It holds no message, no key and no secret."""

    time_ms: int
    account: str
    user: str
    address: str
    """Where the client called from."""
    action: str
    queue: str
    """The queue's ARN; empty for an action on no queue."""
    messages: int
    bytes_in: int
    bytes_out: int
    outcome: str
    """`ok`, or the error code that the caller was given."""
    status: int
    latency_us: int
    request_id: str

    def readable(self) -> UsageEvent:
        """The same with text that is Unicode throughout: what a client calls an action need not be."""
        texts = {
            name: value.encode("utf-8", "replace").decode()
            for name, value in msgspec.structs.asdict(self).items()
            if isinstance(value, str)
        }
        return msgspec.structs.replace(self, **texts)
