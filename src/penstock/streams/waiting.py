"""Waits with a time limit."""

from __future__ import annotations

import asyncio


async def came(event: asyncio.Event, seconds: float | None) -> bool:
    """Waits for the event for so long at most; returns whether it came. None: without end."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
