"""A metadata server as the store knows it: an entry under the server's lease, which goes with it."""

from __future__ import annotations

from typing import Literal

import msgspec

SERVERS = "cluster/metadata/"

OrganisationName = Literal["replicated", "sharded-direct", "sharded-forwarding"]
REPLICATED: OrganisationName = "replicated"
SHARDED_DIRECT: OrganisationName = "sharded-direct"
SHARDED_FORWARDING: OrganisationName = "sharded-forwarding"


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A metadata server that lives."""

    name: str
    address: str
    """HOST:PORT, as front ends and other metadata servers reach it."""
    organisation: OrganisationName = REPLICATED
    copies: int = 2
    """On how many servers each shard is."""
    incarnation: str = ""
    """Another one after every start: two servers of one name are told apart by it."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ServerEntry)


def server_key(name: str) -> str:
    """Where a server says that it lives."""
    return SERVERS + name


def encode_server(entry: ServerEntry) -> bytes:
    """The bytes to store."""
    return _encoder.encode(entry)


def decode_server(stored: bytes) -> ServerEntry:
    """What was stored; raises `msgspec.MsgspecError` on anything else."""
    return _decoder.decode(stored)
