"""Messages between metadata servers and their clients; each is in the head of a frame.

Values are in the bodies of frames: one value unchanged, several as a MessagePack array of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import msgspec

from penstock.model.batch import Buffer

SERVICE = "metadata"
"""The service in the handshake."""
PROTOCOL_VERSION = 1

Kind = TypeVar("Kind")
FailureKind = Literal["conflict", "lease-ended", "watch-lost", "unavailable", "not-done", "bad-request"]
"""`unavailable`: a write may have been done nevertheless; `not-done`: nothing was, so another server may be asked."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first request after the handshake."""

    version: int
    name: str


class Get(msgspec.Struct, frozen=True, array_like=True, tag="get"):
    """An entry: with `fresh` from the store, else from the cache if it is there."""

    key: str
    fresh: bool
    forwarded: bool = False
    """Asked by another server, so that it is not passed on again."""


class List(msgspec.Struct, frozen=True, array_like=True, tag="list"):
    """All entries under a prefix, in the same two ways."""

    prefix: str
    fresh: bool


class Put(msgspec.Struct, frozen=True, array_like=True, tag="put"):
    """The value is the body."""

    key: str
    version: int | None
    lease: int | None
    forwarded: bool = False


class Delete(msgspec.Struct, frozen=True, array_like=True, tag="delete"):
    """See `MetadataStore.delete`."""

    key: str
    version: int | None
    forwarded: bool = False


class Watch(msgspec.Struct, frozen=True, array_like=True, tag="watch"):
    """Answered with `Changes` until it is ended."""

    prefix: str
    after: int


class EndWatch(msgspec.Struct, frozen=True, array_like=True, tag="end-watch"):
    """Ends the watch of a request id; not answered."""

    watch: int


class Grant(msgspec.Struct, frozen=True, array_like=True, tag="grant"):
    """See `MetadataStore.grant`."""

    seconds: float


class Renew(msgspec.Struct, frozen=True, array_like=True, tag="renew"):
    """See `MetadataStore.renew`."""

    lease: int


class Revoke(msgspec.Struct, frozen=True, array_like=True, tag="revoke"):
    """See `MetadataStore.revoke`."""

    lease: int


class Describe(msgspec.Struct, frozen=True, array_like=True, tag="describe"):
    """The state and counters of the server."""


class Ping(msgspec.Struct, frozen=True, array_like=True, tag="ping"):
    """Whether the server is there."""


Request = Ping | Hello | Get | List | Put | Delete | Watch | EndWatch | Grant | Renew | Revoke | Describe


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag="welcome"):
    """The server, and how the servers share their work."""

    server: str
    organisation: str
    copies: int


class Found(msgspec.Struct, frozen=True, array_like=True, tag="found"):
    """The entry, its value in the body; version 0: there is none."""

    version: int
    behind: bool = False
    """The server receives no changes from the store at present: the entry may have changed long ago."""


class Listed(msgspec.Struct, frozen=True, array_like=True, tag="listed"):
    """A part of a listing: (key, value, version) in the body; the last one has `more` false."""

    version: int
    more: bool


class Written(msgspec.Struct, frozen=True, array_like=True, tag="written"):
    """The version of a change."""

    version: int


class Changes(msgspec.Struct, frozen=True, array_like=True, tag="changes"):
    """(key, value or nil, version) in the body, or none: everything up to `upto` has now been delivered."""

    upto: int


class Granted(msgspec.Struct, frozen=True, array_like=True, tag="granted"):
    """A new lease."""

    lease: int


class Renewed(msgspec.Struct, frozen=True, array_like=True, tag="renewed"):
    """Whether the lease is alive."""

    alive: bool


class Revoked(msgspec.Struct, frozen=True, array_like=True, tag="revoked"):
    """The lease has ended."""


class Pong(msgspec.Struct, frozen=True, array_like=True, tag="pong"):
    """The server is there."""


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The error."""

    kind: FailureKind
    message: str


class Description(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="description"):
    """A metadata server for its operator; counters are since its start."""

    server: str
    organisation: str
    copies: int
    servers: list[str]
    following: bool
    """Whether it receives every change of the store as it happens."""
    version: int
    """It has received everything up to here."""
    connections: int
    watches: int
    cached_entries: int
    cached_bytes: int
    hits: int
    """Reads answered from the cache."""
    misses: int
    """Reads that went to the store."""
    writes: int
    forwarded: int
    """Requests passed on to a server that has the shard."""
    strayed: int
    """Requests for shards that this server does not keep, answered from the store nevertheless."""


Answer = (
    Pong | Welcome | Found | Listed | Written | Changes | Granted | Renewed | Revoked | Failed | Description
)

RawEntry = tuple[str, bytes, int]
RawChange = tuple[str, bytes | None, int]

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_entries = msgspec.msgpack.Decoder(list[RawEntry])
_changes = msgspec.msgpack.Decoder(list[RawChange])


def encode_message(message: Request | Answer) -> bytes:
    """The head of a frame."""
    return _encoder.encode(message)


def encode_items(items: Sequence[RawChange]) -> bytes:
    """The body of a frame with several values."""
    return _encoder.encode(items)


def decode_request(head: Buffer) -> Request:
    """Raises `msgspec.MsgspecError` on anything else."""
    return _read(_requests, head)


def decode_answer(head: Buffer) -> Answer:
    """Raises `msgspec.MsgspecError` on anything else."""
    return _read(_answers, head)


def decode_entries(body: Buffer) -> list[RawEntry]:
    """Raises `msgspec.MsgspecError` on anything else."""
    return _read(_entries, body)


def decode_changes(body: Buffer) -> list[RawChange]:
    """Raises `msgspec.MsgspecError` on anything else."""
    return _read(_changes, body)


def _read(decoder: msgspec.msgpack.Decoder[Kind], data: Buffer) -> Kind:
    try:
        return decoder.decode(data)
    except (RecursionError, UnicodeDecodeError):  # which msgspec does not make its own
        raise msgspec.DecodeError("it is nested too deeply, or a text in it is not UTF-8") from None
