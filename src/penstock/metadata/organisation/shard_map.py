"""The map from keys to servers: a key belongs to a shard, a shard to the servers that rank highest for it.

Rendezvous hashing: every server has a rank for every shard, computed from both names. Processes that know the same servers
compute the same map, and when a server joins or leaves only the shards move that it gains or had.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b

SHARDS = 1024
"""Many more than servers, so that each has about the same share; few enough that the whole map is made at once."""


def shard_of(key: str) -> int:
    """The shard of a key: the same for all processes, forever."""
    return int.from_bytes(blake2b(key.encode(), digest_size=4).digest(), "little") % SHARDS


class ShardMap:
    """Which servers keep which shard; immutable, a new set of servers makes a new one."""

    def __init__(self, servers: Iterable[str], copies: int) -> None:
        self.servers = tuple(sorted(set(servers)))
        self.copies = copies

    def servers_of(self, key: str) -> tuple[str, ...]:
        """The servers that keep a key, the one to ask first in front; fewer than `copies` only if there are fewer."""
        return self._table[shard_of(key)]

    def ranked(self, name: str) -> tuple[str, ...]:
        """All servers in an order that is the name's own, so that many who choose spread over them."""
        return tuple(sorted(self.servers, key=lambda server: (_rank(name, server), server)))

    @cached_property
    def _table(self) -> list[tuple[str, ...]]:
        return [self.ranked(str(shard))[: self.copies] for shard in range(SHARDS)]


def _rank(name: str, server: str) -> bytes:
    return blake2b(f"{name}\0{server}".encode(), digest_size=8).digest()
