"""Requests to etcd's JSON gateway and its answers: numbers as text, bytes in base64, zeros left out."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

Message = TypeVar("Message")


class Header(msgspec.Struct):
    """In every answer: the revision of the member."""

    revision: int = 0


class KeyValue(msgspec.Struct):
    """An entry; `mod_revision` is the revision of its last change."""

    key: bytes
    value: bytes = b""
    mod_revision: int = 0


class RangeAnswer(msgspec.Struct):
    """The entries of a range of keys, and whether there are more than were requested."""

    header: Header
    kvs: list[KeyValue] = []
    more: bool = False


class WriteAnswer(msgspec.Struct):
    """Answers a put, a deletion (with the number of deleted entries) or a transaction (with whether it was done)."""

    header: Header
    deleted: int = 0
    succeeded: bool = False


class LeaseAnswer(msgspec.Struct):
    """A lease and its remaining seconds; none: there is no such lease."""

    ID: int = 0
    TTL: int = 0


class StatusAnswer(msgspec.Struct):
    """The status of a member: its leader, 0 for none."""

    header: Header
    leader: int = 0


class TokenAnswer(msgspec.Struct):
    """The token that authenticates later requests."""

    token: str


class Event(msgspec.Struct):
    """A change of an entry."""

    kv: KeyValue
    type: str = "PUT"


class WatchAnswer(msgspec.Struct):
    """A message of a watch: changes, or that it was created, or that it has ended and why."""

    header: Header
    events: list[Event] = []
    created: bool = False
    canceled: bool = False
    compact_revision: int = 0
    cancel_reason: str = ""
    fragment: bool = False
    """More changes of the same revisions follow."""


class Streamed(msgspec.Struct, Generic[Message]):
    """A line of a stream."""

    result: Message | None = None
    error: Any = None


class Problem(msgspec.Struct):
    """An error; older gateways put the text into `error`, and streams an object."""

    error: Any = None
    message: str = ""
    code: int = 0

    @classmethod
    def read(cls, body: bytes) -> Problem | None:
        """None if it is not what etcd says when something is wrong."""
        try:
            found = msgspec.json.decode(body, type=cls, strict=False)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return cls.of_stream(found.error) if isinstance(found.error, dict) else found

    @classmethod
    def of_stream(cls, error: Any) -> Problem:
        """An error within a stream."""
        if not isinstance(error, dict):
            return cls(message=str(error))
        code = error.get("grpc_code", error.get("code", 0))
        return cls(message=str(error.get("message", error)), code=code if isinstance(code, int) else 0)


def encode(request: dict[str, Any]) -> bytes:
    """Bytes become base64."""
    return msgspec.json.encode(request)


def decode(body: bytes, kind: type[Message]) -> Message:
    """Raises `msgspec.MsgspecError`."""
    return msgspec.json.decode(body, type=kind, strict=False)


def range_end(prefix: bytes) -> bytes:
    """The first key after all that begin with the prefix, which is never empty and, being UTF-8, has no byte 255."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
