"""Carries out the front end's requests to the metadata store through the mirror, so that the cache has the results at once."""

from __future__ import annotations

import asyncio

from penstock.frontend.registry import WriteDone
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import ABSENT
from penstock.steps.step import Put, Remove, Stored, StoreStep


class MetadataRegistry:
    """Writes are rare, so each may have its task."""

    def __init__(self, mirror: MetadataMirror) -> None:
        self._mirror = mirror
        self._tasks: set[asyncio.Task[None]] = set()

    def carry_out(self, step: StoreStep, done: WriteDone) -> None:
        """See `Registry`."""
        task = asyncio.get_running_loop().create_task(self._carry_out(step, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, step: StoreStep, done: WriteDone) -> None:
        outcome: int | Stored | Exception | None = None
        try:
            if isinstance(step, Put):
                outcome = await self._mirror.put(step.key, step.value, step.version)
            elif isinstance(step, Remove):
                await self._mirror.delete(step.key, step.version)
            else:
                await self._mirror.refresh(step.key)
                entry = self._mirror.cache.get(step.key)
                outcome = Stored(entry.value, entry.version) if entry is not None else Stored(None, ABSENT)
        except Exception as error:
            outcome = error
        done(outcome)

    async def close(self) -> None:
        """Waits for the writes under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
