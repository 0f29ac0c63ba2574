"""What a connection has for a transport once it is over.

A connection and its transport refer to each other, over TLS through several objects. Only a look at all objects of the process would
find them once they are over (`runtime/processes/collector.py`), so the connection lets go of its transport. Who speaks to the connection
a moment too late is told that it is closing, as before.
"""

from __future__ import annotations

import asyncio


class EndedTransport(asyncio.Transport):
    """Takes everything, and does nothing."""

    def is_closing(self) -> bool:
        """It is closed."""
        return True

    def close(self) -> None:
        """It is closed already."""

    def abort(self) -> None:
        """It is closed already."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """It goes nowhere."""

    def can_write_eof(self) -> bool:
        """Nothing can be written."""
        return False

    def get_write_buffer_size(self) -> int:
        """Nothing waits to be sent."""
        return 0

    def pause_reading(self) -> None:
        """Nothing arrives."""

    def resume_reading(self) -> None:
        """Nothing arrives."""


ENDED = EndedTransport()
