"""How much of what a client was sent it has not taken yet."""

from __future__ import annotations

import array
import asyncio
import fcntl
import termios


def unread_bytes_of(transport: asyncio.Transport) -> int:
    """What waits here and in the system for the client.

    The system takes megabytes before it asks for more; without them a client on a slow line would seem to read
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
