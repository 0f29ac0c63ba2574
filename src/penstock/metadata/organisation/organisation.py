"""The three organisations: which server keeps a key, which one a front end asks, and where a server forwards a request.

    replicated          every server keeps everything, any server is asked
    sharded-direct      a shard is on some servers; front ends have the map and ask one of those
    sharded-forwarding  a shard is on some servers; any server is asked and forwards requests for other shards

This affects only efficiency: versions are the store's. If two processes have different maps for a while, requests take an
extra hop.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.metadata.organisation.server_entry import (
    REPLICATED,
    SHARDED_DIRECT,
    SHARDED_FORWARDING,
    OrganisationName,
    ServerEntry,
)
from penstock.metadata.organisation.shard_map import ShardMap


class Organisation:
    """The living servers and their tasks; immutable, other servers make another one."""

    def __init__(self, name: OrganisationName, copies: int, servers: Mapping[str, ServerEntry]) -> None:
        self.name = name
        self.servers = dict(servers)
        self._map = ShardMap(servers, copies)

    @property
    def sharded(self) -> bool:
        """Whether a server keeps only a part."""
        return self.name != REPLICATED

    def keeps(self, server: str, key: str) -> bool:
        """Whether a server is to have a key in its cache; all of them while the server is not among those that live."""
        return not self.sharded or server not in self.servers or server in self._map.servers_of(key)

    def forward_to(self, server: str, key: str) -> tuple[str, ...]:
        """The servers to which this one passes a request for the key on, the first first; none: it answers itself."""
        if self.name != SHARDED_FORWARDING or self.keeps(server, key):
            return ()
        return self._map.servers_of(key)

    def to_ask(self, asker: str, key: str | None) -> tuple[str, ...]:
        """All servers in the order in which they are asked for a key, or for a request without a key."""
        ranked = self._map.ranked(asker)
        if self.name != SHARDED_DIRECT or key is None or not ranked:
            return ranked
        first = self._map.servers_of(key)
        return first + tuple(server for server in ranked if server not in first)


def agreed(servers: Mapping[str, ServerEntry]) -> Organisation:
    """The organisation that servers say they have.

    While they are changed over from one to another they say different things; any of them can be asked for anything,
    so that until they agree they are asked as if everything were everywhere.
    """
    said = {(entry.organisation, entry.copies) for entry in servers.values()}
    name, copies = said.pop() if len(said) == 1 else (REPLICATED, 1)
    return Organisation(name, copies, servers)
