"""How many requests a user may make and a queue may get: `limits/user/<name>`, `limits/queue/<native name>`, and the defaults
for all without a limit of their own: `limits/default/user`, `limits/default/queue`.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from penstock.metadata.mirror.cache import MetadataCache

LIMITS = "limits/"
Kind = Literal["user", "queue"]


class RequestLimit(msgspec.Struct, frozen=True):
    """The parameters of a token bucket."""

    rate: float
    """Requests a second, in the long run; 0 stops all."""
    burst: int
    """How many may come at once."""


_decoder = msgspec.json.Decoder(RequestLimit)


def key_of(kind: Kind, name: str | None) -> str:
    """The key of a limit; without a name, of the default."""
    return f"{LIMITS}default/{kind}" if name is None else f"{LIMITS}{kind}/{name}"


def parse_key(key: str) -> tuple[Kind, str | None] | None:
    """The arguments of `key_of`, or None for a key that is not a limit's."""
    match key.removeprefix(LIMITS).partition("/"):
        case ("default", _, "user" | "queue" as kind):
            return kind, None
        case ("user" | "queue" as kind, _, name) if name:
            return kind, name
    return None


def check(limit: RequestLimit) -> None:
    """Raises `ValueError` unless the limit makes sense."""
    if not math.isfinite(limit.rate) or limit.rate < 0:
        raise ValueError("the rate is requests a second, 0 or more")
    if limit.burst < 1:
        raise ValueError("the burst is at least 1 request")


def encode(limit: RequestLimit) -> bytes:
    """The bytes to store."""
    return msgspec.json.encode(limit)


def decode(stored: bytes) -> RequestLimit:
    """Decodes a stored limit; raises `msgspec.MsgspecError` on anything else."""
    return _decoder.decode(stored)


def limit_for(cache: MetadataCache, kind: Kind, name: str) -> RequestLimit | None:
    """The limit that holds for a user or a queue; None: there is none."""
    entry = cache.get(key_of(kind, name)) or cache.get(key_of(kind, None))
    return decode(entry.value) if entry is not None else None
