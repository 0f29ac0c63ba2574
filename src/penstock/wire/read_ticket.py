"""Tickets for reading one partition of a log at the node that leads it, for clients outside the cluster.

A front end that has authorized a client gives it a ticket, and the node accepts it. Its contents (the partition, the end
time, the holder) are sealed with the cluster's secret, which both know, so no list of tickets is needed. Ids of partitions
are never used again, so a ticket is valid for only one incarnation of the queue. Times are arguments.
"""

from __future__ import annotations

import hmac
import struct
from typing import NamedTuple

import msgspec

from penstock.model import limits
from penstock.model.batch import Buffer

LIFETIME_MS = 5 * limits.MINUTE_MS
"""So long a right to read that was taken away can still be used."""

_CLAIMS = struct.Struct("<QQ")
_SEAL_BYTES = 32
TICKET_BYTES = _CLAIMS.size + _SEAL_BYTES
"""The size of a ticket without a holder."""
HOLDER_BYTES = 432
"""Of what says who reads; a ticket fits a frame of the port for readers."""
_TEXT_BYTES = 128
_PURPOSE = b"penstock read ticket 1\0"
"""The secret seals other things as well; no seal of theirs is one of these."""


class TicketError(Exception):
    """This is no ticket of the cluster, or it has ended; the message says which, and never contains the ticket."""


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """The reader and the queue, for the usage record; the node does not use them otherwise."""

    account: str
    user: str
    queue: str
    """The queue's ARN."""


_encode_holder = msgspec.msgpack.Encoder().encode
_decode_holder = msgspec.msgpack.Decoder(Holder).decode


def encode_holder(holder: Holder) -> bytes:
    """Fits a ticket; names that are longer than those of people and queues are shortened."""
    encoded = _encode_holder(holder)
    if len(encoded) <= HOLDER_BYTES:
        return encoded
    return _encode_holder(Holder(_cut(holder.account), _cut(holder.user), _cut(holder.queue)))


def _cut(text: str) -> str:
    return text.encode()[:_TEXT_BYTES].decode(errors="ignore")


class ReadTicket(NamedTuple):
    """What the holder may do."""

    partition: int
    """The id of the partition whose log may be read, as nodes know it."""
    until_ms: int
    holder: Holder | None = None
    """The holder whose reads are recorded; None: they are not."""


class TicketSeal:
    """Gives out tickets and takes them; front ends and nodes have one each, with the same secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def issue(self, partition: int, now_ms: int, holder: bytes = b"") -> bytes:
        """A ticket for the log of a partition, from now on; `holder` as `encode_holder` gives it."""
        claims = _CLAIMS.pack(partition, now_ms + LIFETIME_MS) + holder
        return claims + self._seal(claims)

    def check(self, ticket: Buffer, now_ms: int) -> ReadTicket:
        """The contents of a ticket; raises `TicketError`. Nothing of it is trusted before its seal is verified."""
        if not TICKET_BYTES <= len(ticket) <= TICKET_BYTES + HOLDER_BYTES:
            raise TicketError("its first frame is not a ticket")
        given = bytes(ticket)
        claims = given[:-_SEAL_BYTES]
        if not hmac.compare_digest(given[-_SEAL_BYTES:], self._seal(claims)):
            raise TicketError("its ticket is not one of this cluster's")
        (partition, until_ms), holder = _CLAIMS.unpack_from(claims), claims[_CLAIMS.size :]
        found = ReadTicket(partition, until_ms, _decode_holder(holder) if holder else None)
        if has_ended(found, now_ms):
            raise TicketError("its ticket has ended")
        return found

    def _seal(self, claims: bytes) -> bytes:
        return hmac.digest(self._secret, _PURPOSE + claims, "sha256")


def has_ended(ticket: ReadTicket, now_ms: int) -> bool:
    """Whether nothing may be read with it any more."""
    return now_ms >= ticket.until_ms
