"""Writes several buffers to a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.model import limits
from penstock.model.batch import Buffer

JOIN_BYTES = 16 * limits.KIBIBYTE
"""Buffers that are smaller than this together are joined into one piece: copying them costs less than a vectored write."""


def write_together(transport: asyncio.WriteTransport, buffers: Sequence[Buffer], size: int) -> None:
    """Writes them in order; `size`: how many bytes they have together."""
    if len(buffers) == 1:
        transport.write(buffers[0])
    elif size <= JOIN_BYTES:
        transport.write(b"".join(buffers))
    else:
        transport.writelines(buffers)
