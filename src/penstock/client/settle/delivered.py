"""Messages that were delivered to this consumer and wait to be settled, alone or by the delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from penstock.client.connection.failure import refused
from penstock.client.consume.delivered_run import DeliveredRun, bodies_of, located, parts_of
from penstock.client.consume.message import MessageView
from penstock.client.duration import Duration, milliseconds
from penstock.client.produce.outgoing import AttributeValue, Body
from penstock.client.replies.reply import Outcome, check_address, reply_message, return_address
from penstock.client.settle.settlement import DELETE, SettleAction, Settlement, Settler, giving_back
from penstock.client_core.lease import Lease
from penstock.wire.messages import Delivery


class Message(MessageView, eq=False):
    """A leased message: read it, then delete, release or extend it before its lease ends.

    The three calls start at once and return a future. Awaiting it confirms that the server has done it, on disk; it raises
    `stale-receipt` when the lease had ended before.
    """

    delivery: DeliveredMessages
    """Its delivery."""

    @property
    def place(self) -> tuple[DeliveredRun, int]:
        """Its position in the delivery."""
        return self._part, self._index

    def delete(self) -> asyncio.Future[None]:
        """Done with it: the server forgets the message."""
        return self.delivery.settler.one(DELETE, self.delivery.lease, self.sequence)

    ack = delete

    def release(self, delay: Duration = 0, *, error: str | BaseException = "") -> asyncio.Future[None]:
        """Gives it back for another try, not before `delay` seconds; `error`, what went wrong, is for its lifecycle."""
        return self.delivery.settler.one(giving_back(delay, error), self.delivery.lease, self.sequence)

    def extend(self, visibility_timeout: Duration) -> asyncio.Future[None]:
        """Keeps it for so many seconds from now."""
        action = SettleAction("extend", milliseconds(visibility_timeout, "visibility_timeout"))
        return self.delivery.settler.one(action, self.delivery.lease, self.sequence)

    @property
    def reply_to(self) -> str | None:
        """The queue that a reply is awaited in; None: it was not sent with `queue.request`."""
        address = return_address(self)
        return None if address is None else address.queue

    async def reply(
        self,
        body: Body = b"",
        *,
        outcome: Outcome = "succeeded",
        error: str | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
        delete: bool = True,
        to: str | None = None,
    ) -> bool:
        """Replies to the sender of a `queue.request`, then deletes the message (unless `delete=False`), in that order.

        The sender names the queue of the reply. A queue whose name does not begin with `reply-` must be named here too,
        with `to`: otherwise the sender of a request could have replies sent to any queue.

        Returns when both are on disk. False: the reply queue is gone, so that no requester waits for a reply any more; the
        message is deleted all the same.
        """
        address, replier = return_address(self), self.delivery.settler.replier
        if address is None or replier is None:
            raise refused(
                f"message {self.sequence} of {self.queue_name!r} requests no reply: it was not sent with queue.request()"
            )
        check_address(address, to)
        replied = await replier.send(address.queue, reply_message(address, body, outcome, error, attributes))
        if delete:
            await self.delete()
        return replied


class DeliveredMessages(Sequence[Message]):
    """Messages that were delivered together; a sequence of `Message`, each made when it is accessed.

    The batch calls settle all messages that are not settled yet. They start at once and return a future; messages whose
    lease had ended are counted and listed in its `Settlement`, not raised.
    """

    __slots__ = ("_batches", "_body", "_count", "_parts", "lease", "queue_name", "settler", "until_ms")

    def __init__(
        self, queue_name: str, settler: Settler, delivery: Delivery, body: memoryview, arrived: float
    ) -> None:
        batches = delivery.batches
        self.queue_name = queue_name
        """The queue they came from."""
        self.settler = settler
        self.lease = Lease(delivery.token, batches, arrived)
        self.until_ms: int = delivery.until_ms
        """When the lease ends unless it is extended: milliseconds since 1970 by the server's clock."""
        self._batches = batches
        self._body = body
        self._count = batches[0].count if len(batches) == 1 else sum(batch.count for batch in batches)
        self._parts: list[DeliveredRun] | None = None

    @property
    def parts(self) -> list[DeliveredRun]:
        """The runs of messages in which it came."""
        if self._parts is None:
            self._parts = parts_of(self.queue_name, self._batches, self._body)
        return self._parts

    # -- reading ---------------------------------------------------------------------------------------------

    def bodies(self) -> list[bytes]:
        """All bodies, in order: the quickest way to them."""
        return bodies_of(self.parts)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Message]:
        for part in self.parts:
            for index in range(part.count):
                yield Message(part, index, self)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._count))]
        return Message(*located(self.parts, index), self)

    def __repr__(self) -> str:
        return f"<{self._count} messages of {self.queue_name!r}>"

    # -- settling --------------------------------------------------------------------------------------------

    def delete(self) -> asyncio.Future[Settlement]:
        """Done with them: the server forgets the messages."""
        return self.settler.together(DELETE, self.lease)

    ack = delete

    def release(self, delay: Duration = 0, *, error: str | BaseException = "") -> asyncio.Future[Settlement]:
        """Gives them back for another try, not before `delay` seconds; `error`, what went wrong, is for their
        lifecycle."""
        return self.settler.together(giving_back(delay, error), self.lease)

    def extend(self, visibility_timeout: Duration) -> asyncio.Future[Settlement]:
        """Keeps them for so many seconds from now."""
        return self.settler.together(
            SettleAction("extend", milliseconds(visibility_timeout, "visibility_timeout")), self.lease
        )
