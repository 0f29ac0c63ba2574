"""Connections to the nodes of a cluster, one for each node in the map, opened before they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from penstock.cluster.layout.decoder import node_of_key
from penstock.config.address import Address
from penstock.routing.cluster_map import ClusterMap
from penstock.runtime.engine.tcp_link import TcpLink

MakeLink = Callable[[Address], TcpLink]


class NodeLinks:
    """A link to every living node, and to those whose address is still requested."""

    def __init__(self, cluster: ClusterMap, loop: asyncio.AbstractEventLoop, make: MakeLink) -> None:
        self._map = cluster
        self._loop = loop
        self._make = make
        self._links: dict[str, TcpLink] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._turn = 0
        cluster.listen(self._changed)
        self._follow()

    def to(self, address: str) -> TcpLink:
        """The link to an address; it may not be connected yet."""
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = self._make(Address.parse(address, default_port=0))
            link.start()
        return link

    def connected(self) -> list[TcpLink]:
        """Those that can be asked right now; another one is the first each time."""
        links = [link for link in self._links.values() if link.connected]
        self._turn += 1
        start = self._turn % len(links) if links else 0
        return links[start:] + links[:start]

    async def first_contact(self) -> None:
        """Returns when there is a connection to any of the nodes that are known now."""
        waiting = [self._loop.create_task(link.found()) for link in self._links.values()]
        try:
            if waiting:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def close(self) -> None:
        """Ends all connections; everything outstanding fails."""
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.close() for link in links), *self._closing)

    def __iter__(self) -> Iterator[TcpLink]:
        return iter(self._links.values())

    def _changed(self, key: str) -> None:
        node = node_of_key(key)
        if node is not None:
            self._follow()
            lives = self._map.nodes.get(node)
            if lives is not None:  # after a restart requests should not wait for the end of a pause
                self.to(lives.native).look_now()

    def _follow(self) -> None:
        """Opens a link to every node; closes those to unused addresses."""
        wanted = {entry.native for entry in self._map.nodes.values()}
        for address in wanted:
            self.to(address)
        for address in [known for known in self._links if known not in wanted]:
            if not self._map.is_needed(address):
                task = self._loop.create_task(self._links.pop(address).close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
