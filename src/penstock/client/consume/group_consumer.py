"""Consumes from a priority group, a few messages at a time, so that a high priority is served soon."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from penstock.client.connection.link import Link
from penstock.client.connection.route import Route
from penstock.client.consume.group_messages import GroupMessages
from penstock.client.consume.subscription import CLOSE_SECONDS
from penstock.client.settle.delivered import Message
from penstock.client.settle.heartbeat import Heartbeat
from penstock.client_core.settling import GIVE_BACK
from penstock.model.errors import PenstockError

logger = logging.getLogger("penstock.client")

WAIT_SECONDS = 60.0
"""How long one request waits for messages; then the next one does."""


class GroupConsumer:
    """Yields one `Message` after the other; leave it with `async with`, or call `aclose`."""

    def __init__(
        self,
        link: Link,
        receive: Callable[[float], Awaitable[GroupMessages]],
        routes: Mapping[str, Route],
        visibility_timeout_ms: int | None,
        *,
        heartbeat: bool,
    ) -> None:
        self._link = link
        self._receive = receive
        self._routes = routes
        self._visibility_timeout_ms = visibility_timeout_ms
        self._with_heartbeat = heartbeat
        self._heartbeats: dict[str, Heartbeat] = {}
        self._at_hand: deque[Message] = deque()
        self._fetching: asyncio.Task[None] | None = None
        self._waiting = 0
        self._closed = False
        link.background.add(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        while not self._closed:
            while self._at_hand:
                message = self._at_hand.popleft()
                if not self._expired(message):
                    return message
            if self._fetching is None:
                self._fetching = self._link.loop.create_task(self._fetch())
            await self._fetched(self._fetching)
        raise StopAsyncIteration

    async def _fetched(self, fetching: asyncio.Task[None]) -> None:
        """Several callers may wait for one request; it is cancelled when the last of them is."""
        self._waiting += 1
        try:
            await asyncio.wait([fetching])
        except asyncio.CancelledError:
            if self._waiting == 1:
                fetching.cancel()
                self._fetching = None
            raise
        finally:
            self._waiting -= 1
        if self._fetching is fetching:
            self._fetching = None
            if not fetching.cancelled():
                fetching.result()

    async def _fetch(self) -> None:
        messages = await self._receive(WAIT_SECONDS)
        for delivery in messages.deliveries:
            if self._with_heartbeat:
                self._heartbeat_of(delivery.queue_name, delivery[0]).keep(delivery.lease)
            self._at_hand.extend(delivery)

    def _heartbeat_of(self, queue: str, message: Message) -> Heartbeat:
        heartbeat = self._heartbeats.get(queue)
        if heartbeat is None:
            settler = message.delivery.settler
            heartbeat = self._heartbeats[queue] = Heartbeat(self._link, settler, self._lease_ms(queue))
        return heartbeat

    def _lease_ms(self, queue: str) -> int:
        description = self._routes[queue].description
        if self._visibility_timeout_ms is None and description is not None:
            return description.settings.visibility_timeout_ms
        return self._visibility_timeout_ms or 0

    def _expired(self, message: Message) -> bool:
        """Whether the lease ended while the message waited here: the server hands it out again."""
        lease_ms = self._lease_ms(message.queue_name)
        if self._with_heartbeat or not lease_ms:
            return False
        return self._link.loop.time() > message.delivery.lease.arrived + lease_ms / 1000

    # -- ending ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends it; messages that were received but never handed out go back to their queues."""
        if self._closed:
            return
        self._closed = True
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        left, self._at_hand = self._at_hand, deque()
        if left and self._link.connected:
            await _give_back(left)

    close = aclose

    def __del__(self) -> None:
        left = self._at_hand
        if left and not self._closed:
            self._link.background.run_from_collector(lambda: _give_back(left))


async def _give_back(messages: Iterable[Message]) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await asyncio.gather(
                *(
                    message.delivery.settler.one(GIVE_BACK, message.delivery.lease, message.sequence)
                    for message in messages
                )
            )
    except (PenstockError, TimeoutError) as error:
        logger.warning(
            "could not give messages back; they are redelivered when their lease ends: %(error)s",
            {"error": error},
        )
