"""Messages that one receive got from several queues."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import overload

from penstock.client.duration import Duration
from penstock.client.settle.delivered import DeliveredMessages, Message
from penstock.client.settle.settlement import Settlement


class GroupMessages(Sequence[Message]):
    """Messages of several queues, the greatest weight first; each knows its queue (`message.queue_name`).

    The batch calls settle all messages that are not settled yet, in every queue. They start at once and return a future.
    """

    __slots__ = ("_count", "deliveries")

    def __init__(self, deliveries: Sequence[DeliveredMessages]) -> None:
        self.deliveries: list[DeliveredMessages] = list(deliveries)
        """The delivery of each queue."""
        self._count = sum(map(len, deliveries))

    def bodies(self) -> list[bytes]:
        """All bodies, in order: the quickest way to them."""
        return [body for delivery in self.deliveries for body in delivery.bodies()]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Message]:
        for delivery in self.deliveries:
            yield from delivery

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if place >= 0:
            for delivery in self.deliveries:
                if place < len(delivery):
                    return delivery[place]
                place -= len(delivery)
        raise IndexError("no such message among those received")

    def __repr__(self) -> str:
        given = ", ".join(f"{len(delivery)} of {delivery.queue_name!r}" for delivery in self.deliveries)
        return f"<messages: {given or 'none'}>"

    def delete(self) -> asyncio.Future[Settlement]:
        """Done with them: the server forgets the messages."""
        return _together([delivery.delete() for delivery in self.deliveries])

    ack = delete

    def release(self, delay: Duration = 0, *, error: str | BaseException = "") -> asyncio.Future[Settlement]:
        """Gives them back for another try, not before `delay` seconds."""
        return _together([delivery.release(delay, error=error) for delivery in self.deliveries])

    def extend(self, visibility_timeout: Duration) -> asyncio.Future[Settlement]:
        """Keeps them for so many seconds from now."""
        return _together([delivery.extend(visibility_timeout) for delivery in self.deliveries])


def _together(futures: Sequence[asyncio.Future[Settlement]]) -> asyncio.Future[Settlement]:
    async def all_of_them() -> Settlement:
        settled = await asyncio.gather(*futures)
        return Settlement(
            sum(one.done for one in settled),
            sum(one.gone for one in settled),
            [sequence for one in settled for sequence in one.stale],
        )

    return asyncio.ensure_future(all_of_them())
