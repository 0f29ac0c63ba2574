"""Requests that wait for a reply: one reply queue for each client, created on first use, and one consumer that assigns
replies.

The queue has an idle expiry, so the queue of a dead client is deleted automatically; a client that is closed deletes its
own.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping

from penstock.client.connection.failure import closed, refused
from penstock.client.connection.link import Link
from penstock.client.connection.route import Route
from penstock.client.consume.subscription import CLOSE_SECONDS, ConsumerTerms, Subscription
from penstock.client.duration import Duration, milliseconds
from penstock.client.produce.outgoing import AttributeValue
from penstock.client.replies.reply import REPLY_PREFIX, Reply, ReturnAddress, read_reply, request_attributes
from penstock.client.settle.delivered import DeliveredMessages
from penstock.client.settle.settlement import Settlement, Settler
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.wire.messages import CreateQueue, DeleteQueue, Done, QueueDescription

logger = logging.getLogger("penstock.client")

SETTINGS = QueueSettings(
    idle_expiry_ms=10 * limits.MINUTE_MS,
    retention_ms=1 * limits.HOUR_MS,
    max_message_bytes=limits.MESSAGE_BYTES_MAX,
)
_TERMS = ConsumerTerms(credit=1_000, batch_messages=100, visibility_timeout_ms=None, heartbeat=False)


class Requester:
    """The requests of one client that wait for their replies."""

    def __init__(self, link: Link, new_route: Callable[[str], Route]) -> None:
        self._link = link
        self._new_route = new_route
        self.queue_name = REPLY_PREFIX + secrets.token_hex(12)
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._subscribed: asyncio.Future[None] | None = None
        self._subscription: Subscription | None = None
        self._made = False
        self._closed = False

    async def request(
        self,
        queue: str,
        send: Callable[[dict[str, AttributeValue]], Awaitable[object]],
        attributes: Mapping[str, AttributeValue] | None,
        timeout: Duration,  # noqa: ASYNC109  # the word that users expect
    ) -> Reply:
        """Sends a message with the attributes of a request and returns its reply; raises `no-reply` when none came."""
        seconds = milliseconds(timeout, "timeout") / 1000
        if not seconds:
            raise refused("timeout is 0: give seconds, above 0")
        address = ReturnAddress(self.queue_name, secrets.token_hex(16))
        carried = request_attributes(attributes, address)
        reply: asyncio.Future[Reply] = self._link.loop.create_future()
        self._waiting[address.correlation_id] = reply
        try:
            async with asyncio.timeout(seconds) as limit:
                await self._listen()
                await send(carried)
                return await reply
        except TimeoutError:
            if not limit.expired():
                raise
            raise PenstockError(
                ErrorCode.NO_REPLY,
                f"no reply to request {address.correlation_id} from {queue!r} within {seconds:g} s; it may still "
                "be processed, and a later reply is dropped",
            ) from None
        finally:
            del self._waiting[address.correlation_id]
            if reply.done() and not reply.cancelled():
                reply.exception()  # the requester may be gone already

    # -- listening -------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Returns when replies would arrive; many may ask at once."""
        if self._closed:
            raise closed()
        if self._listening is None:
            self._link.background.add(self)
            self._subscribed = self._link.loop.create_future()
            self._listening = self._link.loop.create_task(self._take_replies(self._subscribed))
        assert self._subscribed is not None
        await asyncio.shield(self._subscribed)

    async def _take_replies(self, subscribed: asyncio.Future[None]) -> None:
        """Until closed, or until the server cannot be reached for as long as the client's timeout says."""
        try:
            while True:
                await self._subscribe()
                if not subscribed.done():
                    subscribed.set_result(None)
                await self._dispatch_all()
        except PenstockError as error:
            self._fail_all(subscribed, error)
        except asyncio.CancelledError:
            self._fail_all(subscribed, closed())
            raise
        finally:
            self._listening = None

    async def _subscribe(self) -> None:
        route = self._new_route(self.queue_name)
        route.learn(await self._link.ask(CreateQueue(self.queue_name, SETTINGS), QueueDescription))
        self._made = True
        self._subscription = Subscription(route, Settler(self.queue_name, self._link), _TERMS)
        await self._subscription.start()

    async def _dispatch_all(self) -> None:
        """Returns when the queue is gone: it was idle while there was no connection, and is made again."""
        assert self._subscription is not None
        try:
            while (delivery := await self._subscription.next()) is not None:
                self._dispatch(delivery)
                self._subscription.handed_out(len(delivery))
        except PenstockError as error:
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
            return
        raise closed()

    def _dispatch(self, delivery: DeliveredMessages) -> None:
        for message in delivery:
            reply = read_reply(message)
            future = self._waiting.get(reply.correlation_id) if reply is not None else None
            if reply is None or future is None:
                logger.debug(
                    "dropped a reply to a request that no longer waits: %(reply)r", {"reply": message}
                )
            elif not future.done():
                future.set_result(reply)
        delivery.delete().add_done_callback(_deleted)

    def _fail_all(self, subscribed: asyncio.Future[None], error: PenstockError) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        if not subscribed.done():
            subscribed.set_exception(error)
            subscribed.exception()  # the caller may be gone already

    # -- ending ----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Fails what waits, and deletes the reply queue."""
        if self._closed:
            return
        self._closed = True
        if self._listening is not None:
            self._listening.cancel()
        if self._subscription is not None:
            await self._subscription.close()
        if not self._made or not self._link.connected:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._link.ask(DeleteQueue(self.queue_name), Done)
        except (PenstockError, TimeoutError) as error:
            logger.info(
                "could not delete reply queue %(queue)r; it is deleted when its idle expiry has passed: "
                "%(error)s",
                {"queue": self.queue_name, "error": error},
            )


def _deleted(future: asyncio.Future[Settlement]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        logger.info("could not delete replies; they expire: %(error)s", {"error": error})
