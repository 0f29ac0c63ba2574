"""Knocks at the nodes of a cluster before a process joins it: whoever they refuse is told so at once, instead of trying on.

A node that cannot be reached says nothing about us. One that answers and does not know our secret, or does not take our
certificate, never will; unless another node does take us, in which case it is that one which is wrong.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import cast

from penstock.cluster.layout import NodeEntry
from penstock.config.address import Address
from penstock.model.errors import PenstockError
from penstock.runtime.cluster_streams import dial
from penstock.runtime.cluster_tls import ClusterTls
from penstock.runtime.listening import StrangerError
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, NONCE_BYTES, ClientHandshake, HandshakeError
from penstock.wire.messages import SERVICE

KNOCK_SECONDS = 2.0
"""A node that has not answered by then counts as one that cannot be reached."""
MANNERS_SECONDS = 0.5
"""Who is being asked may finish after another has taken us: an introduction that breaks off looks like a stranger's."""


async def introduce(nodes: Iterable[NodeEntry], secret: bytes, tls: ClusterTls | None) -> None:
    """Returns when a node took us, or none could be asked; raises `StrangerError` where some refused and none took us."""
    knocking = {asyncio.create_task(_knock(node.native, secret, tls)): node for node in nodes}
    refusals: list[str] = []
    try:
        async with asyncio.timeout(KNOCK_SECONDS):
            for answered in asyncio.as_completed(knocking):
                try:
                    await answered
                except HandshakeError as error:
                    refusals.append(str(error))
                except (OSError, PenstockError):
                    continue  # nobody is there, or nobody who can be understood
                else:
                    await asyncio.wait(knocking, timeout=MANNERS_SECONDS)
                    return
    except TimeoutError:
        pass
    finally:
        for task in knocking:
            task.cancel()
        await asyncio.gather(*knocking, return_exceptions=True)
    if refusals:
        raise StrangerError(f"the nodes of this cluster refuse this process: {'; '.join(refusals)}")


async def _knock(place: str, secret: bytes, tls: ClusterTls | None) -> None:
    """Returns when both sides have proven themselves; raises `HandshakeError`, `OSError` and `PenstockError`."""
    address = Address.parse(place, default_port=0)
    try:
        knock = await dial(lambda: _Knock(secret), address.host, address.port, tls)
        try:
            await knock.outcome
        finally:
            knock.close()
    except HandshakeError as error:
        raise HandshakeError(f"{place}: {error}") from None


class _Knock(asyncio.Protocol):
    """The introduction of a client, and nothing after it."""

    def __init__(self, secret: bytes) -> None:
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handshake = ClientHandshake(secret, SERVICE, os.urandom(NONCE_BYTES))
        self._frames = FrameReader(HANDSHAKE_FRAME_BYTES)
        self._proven = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and no subclass of it

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                if self._proven:
                    self._handshake.finish(frame.head)
                    self._end(None)
                    return
                self._proven = True
                assert self._transport is not None
                self._transport.write(b"".join(encode_frame(0, self._handshake.prove(frame.head))))
        except (HandshakeError, PenstockError) as error:
            self._end(error)

    def connection_lost(self, error: Exception | None) -> None:
        assert self._transport is not None
        if self._proven:
            self._end(
                HandshakeError("it does not take our proof of the cluster's secret: it has another one")
            )
        elif self._transport.get_extra_info("sslcontext") is not None:
            # With TLS 1.3 whoever connects is through before the other side has looked at its certificate.
            self._end(HandshakeError("it does not take our certificate"))
        else:
            self._end(ConnectionResetError("it closed the connection"))

    def close(self) -> None:
        """Ends the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _end(self, error: Exception | None) -> None:
        if self.outcome.done():
            return
        if error is None:
            self.outcome.set_result(None)
        else:
            self.outcome.set_exception(error)
