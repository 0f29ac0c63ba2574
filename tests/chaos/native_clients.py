"""Clients of a run that speak the native protocol: each has a connection of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import penstock
from penstock.model.errors import PenstockError
from tests.chaos.told import RETRY_SECONDS, WAIT_SECONDS, Told

PAUSE_SECONDS = 0.2
CONNECT_SECONDS = 60
BATCH = 10


@dataclass
class NativeClients:
    """Senders and receivers of one queue."""

    told: Told
    url: str
    queue: str
    ordered: bool

    async def sender(self, name: str) -> None:
        """Sends one message after the other, each once."""
        number = 0

        async def send(queue: penstock.Queue) -> None:
            nonlocal number
            while not self.told.senders_end.is_set():
                message = f"{name}/{number}"
                self.told.ledger.begin(message)
                number += 1
                try:
                    await queue.send(message.encode(), group=name if self.ordered else None)
                except PenstockError as error:
                    await self._failed("send", error)
                else:
                    self.told.acknowledged(self.queue, name, message)
                    await asyncio.sleep(PAUSE_SECONDS)

        await self._connected(send)

    async def receiver(self) -> None:
        """Receives and deletes whatever there is."""
        await self._connected(self._receive)

    async def _receive(self, queue: penstock.Queue) -> None:
        while not self.told.receivers_end.is_set():
            asked = time.monotonic()
            try:
                messages = list(await queue.receive(BATCH, wait=WAIT_SECONDS))
            except PenstockError as error:
                await self._failed("receive", error)
                continue
            names = [bytes(message.body).decode() for message in messages]
            self.told.given(self.queue, names, asked, ordered=self.ordered)
            if not messages:
                continue
            try:
                settled = await queue.delete_batch(messages)
            except PenstockError as error:
                await self._failed("delete", error)
                continue
            for message, name in zip(messages, names, strict=True):
                if message.sequence in settled.stale:
                    self.told.ledger.keep(name)
                else:
                    self.told.ledger.delete(name, time.monotonic())

    async def _connected(self, work: Callable[[penstock.Queue], Awaitable[None]]) -> None:
        """Connects until it is let in: a front end may be down."""
        while not self.told.receivers_end.is_set():
            try:
                async with penstock.connect(self.url, timeout=CONNECT_SECONDS) as one:
                    await work(one.queue(self.queue))
                    return
            except PenstockError:
                await asyncio.sleep(RETRY_SECONDS)

    async def _failed(self, what: str, error: PenstockError) -> None:
        await self.told.failed(what, f"{error.code}: {error.message}", retryable=error.retryable)
