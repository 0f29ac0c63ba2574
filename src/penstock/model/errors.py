"""One table of all errors between a client and a node.

Each row has its meaning, whether the same request may succeed later, and whether the client must look the queue up again.
The wire carries the code; people read the message.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ErrorCode(StrEnum):
    """The closed set of error codes."""

    BAD_REQUEST = "bad-request"
    BAD_FRAME = "bad-frame"
    UNSUPPORTED_VERSION = "unsupported-version"
    UNKNOWN_REQUEST = "unknown-request"
    UNAUTHENTICATED = "unauthenticated"
    ACCESS_DENIED = "access-denied"
    QUEUE_NOT_FOUND = "queue-not-found"
    QUEUE_EXISTS = "queue-exists"
    QUEUE_DAMAGED = "queue-damaged"
    QUEUE_FULL = "queue-full"
    MESSAGE_TOO_LARGE = "message-too-large"
    BAD_RECEIPT = "bad-receipt"
    STALE_RECEIPT = "stale-receipt"
    ATTEMPT_CHANGED = "attempt-changed"
    NO_DEAD_LETTER_QUEUE = "no-dead-letter-queue"
    UNSUPPORTED = "unsupported"
    CLOCK_UNCERTAIN = "clock-uncertain"
    STAMP_IN_FUTURE = "stamp-in-future"
    OFFSET_GONE = "offset-gone"
    NOT_A_MEMBER = "not-a-member"
    NOT_PRIMARY = "not-primary"
    NOT_ENOUGH_REPLICAS = "not-enough-replicas"
    METADATA_UNAVAILABLE = "metadata-unavailable"
    OUT_OF_ORDER = "out-of-order"
    TOO_MANY_WAITING = "too-many-waiting"
    LIMIT_REACHED = "limit-reached"
    DISK_FULL = "disk-full"
    OVERLOADED = "overloaded"
    THROTTLED = "throttled"
    SHUTTING_DOWN = "shutting-down"
    INTERNAL = "internal"
    UNREACHABLE = "unreachable"
    NO_REPLY = "no-reply"
    REQUEST_FAILED = "request-failed"


class ErrorRow(NamedTuple):
    """The meaning of a code and what a client may do about it."""

    meaning: str
    retryable: bool
    refresh_route: bool = False


ERRORS: dict[ErrorCode, ErrorRow] = {
    ErrorCode.BAD_REQUEST: ErrorRow("the request is well formed but asks for something impossible", False),
    ErrorCode.BAD_FRAME: ErrorRow("the bytes do not follow the protocol; the connection is closed", False),
    ErrorCode.UNSUPPORTED_VERSION: ErrorRow(
        "client and server share no protocol version, or the server is too old for the queue", False
    ),
    ErrorCode.UNKNOWN_REQUEST: ErrorRow("this server does not know the request", False),
    ErrorCode.UNAUTHENTICATED: ErrorRow(
        "the server has users, and the client gave no valid access key", False
    ),
    ErrorCode.ACCESS_DENIED: ErrorRow("no policy allows the user to do this", False),
    ErrorCode.QUEUE_NOT_FOUND: ErrorRow(
        "the queue does not exist, or was deleted and created again", False, True
    ),
    ErrorCode.QUEUE_EXISTS: ErrorRow("a queue of that name exists with other settings", False),
    ErrorCode.QUEUE_DAMAGED: ErrorRow(
        "stored data of the queue is damaged; the queue is out of service until it is repaired", False
    ),
    ErrorCode.QUEUE_FULL: ErrorRow("the queue is at its limit and its overflow policy is reject", True),
    ErrorCode.MESSAGE_TOO_LARGE: ErrorRow("a message or batch is over the limit", False),
    ErrorCode.BAD_RECEIPT: ErrorRow("the receipt was not issued by this server", False),
    ErrorCode.STALE_RECEIPT: ErrorRow("the lease has ended; the message is no longer yours", False),
    ErrorCode.ATTEMPT_CHANGED: ErrorRow(
        "messages of the earlier attempt were deleted or released: the receive cannot be repeated", False
    ),
    ErrorCode.NO_DEAD_LETTER_QUEUE: ErrorRow(
        "the queue has no dead-letter queue, or the message has no source queue", False
    ),
    ErrorCode.UNSUPPORTED: ErrorRow("the queue's settings do not allow this", False),
    ErrorCode.CLOCK_UNCERTAIN: ErrorRow("the server's time is more uncertain than the queue allows", True),
    ErrorCode.STAMP_IN_FUTURE: ErrorRow("a message has a timestamp in the future", False),
    ErrorCode.OFFSET_GONE: ErrorRow(
        "the log no longer has the offset; the message names the first offset", False
    ),
    ErrorCode.NOT_A_MEMBER: ErrorRow(
        "the partitions of this reader were assigned to another member; join the group again", False
    ),
    ErrorCode.NOT_PRIMARY: ErrorRow(
        "another node is the primary of this partition now; look it up again", True, True
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorRow(
        "fewer replicas are in sync than the queue's min_in_sync requires", True
    ),
    ErrorCode.METADATA_UNAVAILABLE: ErrorRow(
        "the metadata store cannot be reached; known queues are still served", True
    ),
    ErrorCode.OUT_OF_ORDER: ErrorRow(
        "an earlier send of this producer was refused; send this one again after that one", True
    ),
    ErrorCode.TOO_MANY_WAITING: ErrorRow("too many receivers are waiting on the queue", True),
    ErrorCode.LIMIT_REACHED: ErrorRow("a limit of the node is reached", False),
    ErrorCode.DISK_FULL: ErrorRow("the disk is full; sends are refused until space returns", True),
    ErrorCode.OVERLOADED: ErrorRow("too much data waits for the node's disk", True),
    ErrorCode.THROTTLED: ErrorRow(
        "a request limit of the user or the queue was exceeded; nothing was done", True
    ),
    ErrorCode.SHUTTING_DOWN: ErrorRow("the node is stopping", True, True),
    ErrorCode.INTERNAL: ErrorRow("a defect of the server; see the server's log", False),
    ErrorCode.UNREACHABLE: ErrorRow(
        "no server answered in time; the request may or may not have been executed", True
    ),
    ErrorCode.NO_REPLY: ErrorRow("no reply to the request came in time; it may still be processed", False),
    ErrorCode.REQUEST_FAILED: ErrorRow("the consumer of the request replied that it failed", False),
}


_SENT_AGAIN = {code for code, row in ERRORS.items() if row.retryable} | {
    ErrorCode.QUEUE_NOT_FOUND,
    ErrorCode.QUEUE_DAMAGED,
}
"""After these the same batch may be stored: later, by another node, or in the queue that has the name now."""


class PenstockError(Exception):
    """Any error for a client; `code` is a row of the table above."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return ERRORS[self.code].retryable

    @property
    def refresh_route(self) -> bool:
        """Whether the client should look up the queue again."""
        return ERRORS[self.code].refresh_route

    @property
    def sent_again(self) -> bool:
        """Whether it makes sense to send the same batch again. An attempt before the one that was refused may have stored it."""
        return self.code in _SENT_AGAIN

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"


class VersionConflictError(Exception):
    """An entry of the metadata store has changed since the caller read it; nothing was written."""
