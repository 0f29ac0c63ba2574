"""A metadata server's entry in the store, which exists as long as the server's lease."""

from __future__ import annotations

from typing import Literal

import msgspec

SERVERS = "cluster/metadata/"

OrganisationName = Literal["replicated", "sharded-direct", "sharded-forwarding"]
REPLICATED: OrganisationName = "replicated"
SHARDED_DIRECT: OrganisationName = "sharded-direct"
SHARDED_FORWARDING: OrganisationName = "sharded-forwarding"


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A living metadata server."""

    name: str
    address: str
    """HOST:PORT, as front ends and other metadata servers reach it."""
    organisation: OrganisationName = REPLICATED
    copies: int = 2
    """On how many servers each shard is."""
    incarnation: str = ""
    """A new number after every start; it distinguishes two servers with one name."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ServerEntry)


def server_key(name: str) -> str:
    """The key of a server's registration."""
    return SERVERS + name


def encode_server(entry: ServerEntry) -> bytes:
    """The bytes to store."""
    return _encoder.encode(entry)


def decode_server(stored: bytes) -> ServerEntry:
    """Decodes a stored entry; raises `msgspec.MsgspecError` on anything else."""
    return _decoder.decode(stored)
