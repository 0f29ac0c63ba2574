"""Made from `penstock.client.settle.delivered` by `make blocking`: do not edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from penstock.client.blocking.bridge import Bridge
from penstock.client.consume.message import MessageView
from penstock.client.duration import Duration
from penstock.client.produce.outgoing import AttributeValue, Body
from penstock.client.replies.reply import Outcome
from penstock.client.settle.delivered import DeliveredMessages, Message
from penstock.client.settle.settlement import Settlement


class BlockingMessage(MessageView, eq=False):
    """A leased message: read it, then delete, release or extend it before its lease ends.

    Each call returns when the server has done it, on disk, and raises `stale-receipt` when the lease had ended.
    """

    _bridge: Bridge
    message: Message
    """Its twin on the event loop."""

    @property
    def delivery(self) -> BlockingDeliveredMessages:
        """Its delivery."""
        return BlockingDeliveredMessages(self._bridge, self.message.delivery)

    def delete(self) -> None:
        """Done with it: the server forgets the message."""
        self._bridge.call(self.message.delete)

    ack = delete

    def release(self, delay: Duration = 0, *, error: str | BaseException = "") -> None:
        """Gives it back for another try, not before `delay` seconds; `error`, what went wrong, is for its lifecycle."""
        self._bridge.call(self.message.release, delay, error=error)

    def extend(self, visibility_timeout: Duration) -> None:
        """Keeps it for so many seconds from now."""
        self._bridge.call(self.message.extend, visibility_timeout)

    @property
    def reply_to(self) -> str | None:
        """The queue that a reply is awaited in; None: it was not sent with `queue.request`."""
        return self.message.reply_to

    def reply(
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
        return self._bridge.call(
            self.message.reply,
            body,
            outcome=outcome,
            error=error,
            attributes=attributes,
            delete=delete,
            to=to,
        )


def blocking(bridge: Bridge, message: Message) -> BlockingMessage:
    """The message as the blocking client shows it."""
    return BlockingMessage(*message.place, bridge, message)


class BlockingDeliveredMessages(Sequence[BlockingMessage]):
    """Messages that were delivered together; a sequence of `BlockingMessage`, each made when it is accessed.

    The batch calls settle all messages that are not settled yet; messages whose lease had ended are counted and listed in
    the `Settlement`, not raised.
    """

    __slots__ = ("_bridge", "_messages")

    def __init__(self, bridge: Bridge, messages: DeliveredMessages) -> None:
        self._bridge = bridge
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[BlockingMessage]:
        for message in self._messages:
            yield blocking(self._bridge, message)

    @overload
    def __getitem__(self, index: int) -> BlockingMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[BlockingMessage]: ...
    def __getitem__(self, index: int | slice) -> BlockingMessage | list[BlockingMessage]:
        if isinstance(index, slice):
            return [blocking(self._bridge, message) for message in self._messages[index]]
        return blocking(self._bridge, self._messages[index])

    @property
    def queue_name(self) -> str:
        """The queue they came from."""
        return self._messages.queue_name

    @property
    def until_ms(self) -> int:
        """When the lease ends unless it is extended: milliseconds since 1970 by the server's clock."""
        return self._messages.until_ms

    def bodies(self) -> list[bytes]:
        """All bodies, in order: the quickest way to them."""
        return self._messages.bodies()

    def __repr__(self) -> str:
        return repr(self._messages)

    def delete(self) -> Settlement:
        """Done with them: the server forgets the messages."""
        return self._bridge.call(self._messages.delete)

    ack = delete

    def release(self, delay: Duration = 0, *, error: str | BaseException = "") -> Settlement:
        """Gives them back for another try, not before `delay` seconds; `error`, what went wrong, is for their
        lifecycle.
        """
        return self._bridge.call(self._messages.release, delay, error=error)

    def extend(self, visibility_timeout: Duration) -> Settlement:
        """Keeps them for so many seconds from now."""
        return self._bridge.call(self._messages.extend, visibility_timeout)
