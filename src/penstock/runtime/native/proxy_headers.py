"""Reads the header of a trusted balancer before anything else, and not one byte more.

A TLS handshake may follow the header, which only the event loop's own transport can read. So the header is examined in the
kernel's buffer, and removed once it is complete.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import ip_network

from penstock.runtime.http.peer import plain_address
from penstock.runtime.http.proxies import parsed_address
from penstock.sqs.protocols.http import Peer
from penstock.wire.proxy_protocol import HEADER_BYTES, MORE, ProxyHeader, ProxyHeaderError, read_header

LOOK_SECONDS = 0.005
"""A header usually comes in one piece; otherwise it is checked at this interval until it is complete."""


class TrustedBalancers:
    """Addresses whose headers are trusted; a connection without one belongs to that address itself."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ip_network(network) for network in networks]

    def trusts(self, address: str) -> bool:
        """Whether a header from there is believed."""
        parsed = parsed_address(plain_address(address))
        return parsed is not None and any(parsed in network for network in self._networks)


def client_of(header: ProxyHeader, secure: bool) -> Peer:
    """The client that a header names; `secure`: whether the connection itself has TLS."""
    return Peer(header.address or "", header.secure if header.secure is not None else secure)


async def take_header(connection: socket.socket, seconds: float) -> ProxyHeader | None:
    """The header at the beginning of a connection, taken out of it; None: there is none.

    Raises `ProxyHeaderError`, also where nothing comes in time, and `OSError`.
    """
    try:
        async with asyncio.timeout(seconds):
            found = await _whole_header(connection)
    except TimeoutError:
        raise ProxyHeaderError(f"neither a header nor anything else came within {seconds:g} s") from None
    if found is not None:
        connection.recv(found.size)  # all of it was there a moment ago
    return found


async def _whole_header(connection: socket.socket) -> ProxyHeader | None:
    seen = 0
    while True:
        await _readable(connection)
        data = connection.recv(HEADER_BYTES, socket.MSG_PEEK)
        found = read_header(data) if data else None
        if found is None or found != MORE:
            return found
        if len(data) == seen:
            await asyncio.sleep(LOOK_SECONDS)
        seen = len(data)


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def is_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(connection, is_ready)
    try:
        await ready
    finally:
        loop.remove_reader(connection)
