"""Who is at the other end of a connection."""

from __future__ import annotations

import asyncio

from penstock.sqs.http import Peer


def peer_of(transport: asyncio.Transport) -> Peer:
    """Who is at the other end."""
    name = transport.get_extra_info("peername")
    address = str(name[0]) if isinstance(name, tuple) and name else ""
    address = address.partition("%")[0]
    if address.startswith("::ffff:") and "." in address:
        address = address.removeprefix("::ffff:")
    return Peer(address, transport.get_extra_info("sslcontext") is not None)
