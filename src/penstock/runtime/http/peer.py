"""The peer of a connection, and the sent bytes that it has not read yet."""

from __future__ import annotations

import array
import asyncio
import fcntl
import termios

from penstock.sqs.protocols.http import Peer


def peer_of(transport: asyncio.Transport) -> Peer:
    """The peer's address."""
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


def unread_bytes_of(transport: asyncio.Transport) -> int:
    """The bytes that wait here and in the system for the client.

    The system accepts megabytes before it asks for more; without counting them a client on a slow line would seem to read
    nothing for minutes.
    """
    waiting = transport.get_write_buffer_size()
    connection_socket = transport.get_extra_info("socket")
    if connection_socket is None:
        return waiting
    queued = array.array("i", [0])
    try:
        fcntl.ioctl(connection_socket.fileno(), termios.TIOCOUTQ, queued)
    except (OSError, ValueError):
        return waiting  # closed meanwhile, or a system that does not tell
    return waiting + queued[0]
