"""Connects to the nodes of a cluster before a process joins it: if they refuse it, the start fails at once with the reason.

A node that cannot be reached proves nothing. A node that answers and does not know our secret, or refuses our certificate,
never will accept us; unless another node accepts us, because then the first one is wrong.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from penstock.cluster.layout.entries import NodeEntry
from penstock.config.address import Address
from penstock.model.errors import PenstockError
from penstock.runtime.cluster.streams import dial
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.processes.listening import StrangerError
from penstock.streams.framed import FramedConnection
from penstock.wire.frames import Frame
from penstock.wire.handshake import NONCE_BYTES, ClientHandshake, HandshakeError
from penstock.wire.messages import SERVICE

ANSWER_SECONDS = 2.0
"""A node that has not answered by then counts as unreachable."""
FINISH_SECONDS = 0.5
"""The other nodes may finish after one has accepted this process: a handshake that breaks off looks like that of a stranger."""


async def check_reachability(nodes: Iterable[NodeEntry], secret: bytes, tls: ClusterTls | None) -> None:
    """Returns when a node took us, or none could be asked; raises `StrangerError` where some refused and none took us."""
    asking = {asyncio.create_task(_ask(node.native, secret, tls)): node for node in nodes}
    refusals: list[str] = []
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            for answered in asyncio.as_completed(asking):
                try:
                    await answered
                except HandshakeError as error:
                    refusals.append(str(error))
                except (OSError, PenstockError):
                    continue  # no node, or none with this protocol
                else:
                    await asyncio.wait(asking, timeout=FINISH_SECONDS)
                    return
    except TimeoutError:
        pass
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    if refusals:
        raise StrangerError(f"the nodes of this cluster refuse this process: {'; '.join(refusals)}")


async def _ask(place: str, secret: bytes, tls: ClusterTls | None) -> None:
    """Returns when both sides have proven themselves; raises `HandshakeError`, `OSError` and `PenstockError`."""
    address = Address.parse(place, default_port=0)
    try:
        handshake = ClientHandshake(secret, SERVICE, os.urandom(NONCE_BYTES), str(address))
        connection = FramedConnection(_Nothing(), asyncio.get_running_loop(), handshake)
        try:
            await dial(lambda: connection, address.host, address.port, tls)
            await connection.authenticated()
        finally:
            connection.abort(ConnectionError("the node has been asked"))
    except HandshakeError as error:
        raise HandshakeError(f"{place}: {error}") from None


class _Nothing:
    """The protocol after the handshake: neither side sends anything more."""

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        pass

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
        pass
