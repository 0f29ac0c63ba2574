"""Carries out what the front end asks of the metadata store: through the mirror, so that the cache knows at once."""

from __future__ import annotations

import asyncio

from penstock.frontend.registry import Written
from penstock.frontend.steps import DeleteEntry, MetadataStep, PutEntry
from penstock.metadata.mirror import MetadataMirror


class MetadataRegistry:
    """Writes are rare, so each may have a task of its own."""

    def __init__(self, mirror: MetadataMirror) -> None:
        self._mirror = mirror
        self._tasks: set[asyncio.Task[None]] = set()

    def carry_out(self, step: MetadataStep, done: Written) -> None:
        """See `Registry`."""
        task = asyncio.get_running_loop().create_task(self._carry_out(step, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, step: MetadataStep, done: Written) -> None:
        outcome: int | Exception | None = None
        try:
            if isinstance(step, PutEntry):
                outcome = await self._mirror.put(step.key, step.value, step.version)
            elif isinstance(step, DeleteEntry):
                await self._mirror.delete(step.key, step.version)
            else:
                await self._mirror.refresh(step.key)
        except Exception as error:
            outcome = error
        done(outcome)

    async def close(self) -> None:
        """Waits for the writes under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
