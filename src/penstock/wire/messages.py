"""Every message of the native protocol: a typed head, and for a few a body of raw bytes.

Heads are msgpack arrays in field order, tagged with their number. New fields are added at the end with a default, so that
old and new peers understand each other. `docs/reference/native-protocol.md` describes `requests` and `answers`.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from penstock.model.document import DocumentReader
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.answers import (
    Answer,
    Challenge,
    Count,
    DeliveredBatch,
    Delivery,
    Done,
    Failed,
    GroupDelivery,
    NodeDescription,
    Peeked,
    QueueDelivery,
    QueueDescription,
    QueueList,
    QueueStatistics,
    ReceiptOutcome,
    Redriven,
    ReplicaStatus,
    SendResult,
    Settled,
    Welcome,
)
from penstock.wire.clock_messages import ClockReading, ReadClock, TakeIds, TakenIds
from penstock.wire.deduplication_messages import ClaimedIds, ClaimIds, FindIds, FoundIds
from penstock.wire.frames import Frame
from penstock.wire.log_messages import (
    CommitOffset,
    DeleteGroup,
    FindOffset,
    GroupDescription,
    GroupList,
    GroupMembership,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    LocateLog,
    LogAddress,
    LogBounds,
    LoggedBatch,
    LogSlice,
    ReadLog,
    SeekGroup,
)
from penstock.wire.requests import (
    AddCredit,
    AlterQueue,
    CreateQueue,
    Delete,
    DeleteQueue,
    DescribeNode,
    DescribeQueue,
    Extend,
    Hello,
    ListQueues,
    MessageState,
    Peek,
    PeekFilter,
    Ping,
    Purge,
    Receipt,
    Receive,
    ReceiveAny,
    Redrive,
    Release,
    Request,
    Send,
    Subscribe,
    Unsubscribe,
    WeightedQueue,
)

__all__ = [
    "PROTOCOL_VERSION",
    "SERVICE",
    "AddCredit",
    "AlterQueue",
    "Answer",
    "Challenge",
    "ClaimIds",
    "ClaimedIds",
    "ClockReading",
    "CommitOffset",
    "Count",
    "CreateQueue",
    "Delete",
    "DeleteGroup",
    "DeleteQueue",
    "DeliveredBatch",
    "Delivery",
    "DescribeNode",
    "DescribeQueue",
    "Done",
    "Extend",
    "Failed",
    "FindIds",
    "FindOffset",
    "FoundIds",
    "GroupDelivery",
    "GroupDescription",
    "GroupList",
    "GroupMembership",
    "Hello",
    "JoinGroup",
    "LeaveGroup",
    "ListGroups",
    "ListQueues",
    "LocateLog",
    "LogAddress",
    "LogBounds",
    "LogSlice",
    "LoggedBatch",
    "Message",
    "MessageState",
    "NodeDescription",
    "Peek",
    "PeekFilter",
    "Peeked",
    "Ping",
    "Purge",
    "QueueDelivery",
    "QueueDescription",
    "QueueList",
    "QueueStatistics",
    "ReadClock",
    "ReadLog",
    "Receipt",
    "ReceiptOutcome",
    "Receive",
    "ReceiveAny",
    "Redrive",
    "Redriven",
    "Release",
    "ReplicaStatus",
    "Request",
    "SeekGroup",
    "Send",
    "SendResult",
    "Settled",
    "Subscribe",
    "TakeIds",
    "TakenIds",
    "Unsubscribe",
    "WeightedQueue",
    "Welcome",
    "decode_answer",
    "decode_request",
    "encode_message",
    "is_known_request",
]

PROTOCOL_VERSION = 1
SERVICE = "node"
"""The service in the handshake of a cluster's nodes and front ends (`handshake`)."""

Message = Request | Answer

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_answers: DocumentReader[Answer] = DocumentReader(Answer, "msgpack")


def encode_message(message: Message) -> bytes:
    """The head of a frame."""
    return _encoder.encode(message)


def decode_request(head: bytes | memoryview) -> Request:
    """Raises `msgspec.DecodeError` (or its `ValidationError`) on anything that is not a request."""
    try:
        return _requests.decode(head)
    except (RecursionError, UnicodeDecodeError) as error:  # which msgspec does not make its own
        raise msgspec.DecodeError(_why(error)) from None


_REQUEST_TAGS = [kind.__struct_config__.tag for kind in get_args(Request)]


def is_known_request(head: bytes | memoryview) -> bool:
    """Whether a head that cannot be read at least names a request of this protocol."""
    try:
        fields = msgspec.msgpack.decode(head)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return isinstance(fields, list) and bool(fields) and fields[0] in _REQUEST_TAGS


def request_of(frame: Frame) -> Request:
    """The request of a frame; raises what its sender is told."""
    if frame.request is not None:
        known: Request = frame.request
        return known
    try:
        return decode_request(frame.head)
    except msgspec.DecodeError as error:
        if is_known_request(frame.head):
            raise PenstockError(ErrorCode.BAD_REQUEST, f"the request cannot be read: {error}") from None
        raise PenstockError(ErrorCode.UNKNOWN_REQUEST, "this server does not know the request") from None


def decode_answer(head: bytes | memoryview) -> Answer:
    """Raises `msgspec.DecodeError` (or its `ValidationError`) on anything that is not an answer."""
    try:
        return _answers.decode(head)
    except (RecursionError, UnicodeDecodeError) as error:  # which msgspec does not make its own
        raise msgspec.DecodeError(_why(error)) from None


def _why(error: RecursionError | UnicodeDecodeError) -> str:
    return "a text in it is not UTF-8" if isinstance(error, UnicodeDecodeError) else "it is nested too deeply"
