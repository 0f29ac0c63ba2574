"""Who is at the other end of a connection."""

from __future__ import annotations

import asyncio

from penstock.sqs.protocols.http import Peer


def peer_of(transport: asyncio.Transport) -> Peer:
    """Who is at the other end."""
    name = transport.get_extra_info("peername")
    address = plain_address(str(name[0])) if isinstance(name, tuple) and name else ""
    return Peer(address, is_secure(transport))


def is_secure(transport: asyncio.Transport) -> bool:
    """Whether a connection has TLS."""
    return transport.get_extra_info("sslcontext") is not None


def plain_address(address: str) -> str:
    """An address as the system gives it, without its scope, and as IPv4 where it is one."""
    address = address.partition("%")[0]
    if address.startswith("::ffff:") and "." in address:
        address = address.removeprefix("::ffff:")
    return address
