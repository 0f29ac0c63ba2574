"""Made from `penstock.client.produce.producer`, `penstock.client.produce.outgoing_batch` by `make blocking`: do not edit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from types import TracebackType
from typing import Self

from penstock.client.blocking.bridge import MESSAGES_PER_CROSSING, Bridge
from penstock.client.produce.outgoing import Sendable
from penstock.client.produce.outgoing_batch import ProducerError, Ticket
from penstock.client.produce.producer import Producer
from penstock.client.produce.sent import SentMessage
from penstock.client_core.gathering import FailedBatch


class BlockingProducer:
    """Sends many messages quickly; made by `queue.producer()`. Several threads may use one.

    Crossing to the event loop costs tens of µs a call: prefer `send_many`.
    """

    def __init__(self, bridge: Bridge, producer: Producer) -> None:
        self._bridge = bridge
        self._producer = producer

    def send(self, message: Sendable) -> BlockingTicket:
        """Takes a message; waits only for room. Ask the ticket to know that it is stored.

        Raises `ProducerError` when earlier messages failed and that was not reported yet; then this message has
        not been taken.
        """
        return BlockingTicket(self._bridge, self._bridge.call(self._producer.send, message))

    def send_many(self, messages: Iterable[Sendable]) -> None:
        """Takes any number of messages, in order; several times quicker than `send` for each.

        Raises `ProducerError` when earlier messages failed and no call has reported them yet. Its `failures` then also have
        what was read of `messages` and not taken; what they have left goes on behind that.
        """
        source = iter(messages)  # read on the caller's thread: a generator may do anything
        while chunk := list(islice(source, MESSAGES_PER_CROSSING)):
            left = iter(chunk)
            try:
                self._bridge.call(self._producer.send_many, left)
            except ProducerError as error:
                raise error.with_untaken(left) from None

    def flush(self) -> None:
        """Returns when everything taken so far is stored; raises `ProducerError` with what was not."""
        self._bridge.call(self._producer.flush)

    def close(self) -> None:
        """Flushes; takes no more messages."""
        self._bridge.end(self._producer.close)

    def __enter__(self) -> Self:
        self._bridge.call(self._producer.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bridge.end(self._producer.__aexit__, kind, error, trace)

    def take_failures(self) -> list[FailedBatch]:
        """Returns and forgets the failures since the last report."""
        return self._bridge.call_plain(self._producer.take_failures)


class BlockingTicket:
    """A message that was handed over. Costs next to nothing if its result is not used."""

    __slots__ = ("_bridge", "_ticket")

    def __init__(self, bridge: Bridge, ticket: Ticket) -> None:
        self._bridge = bridge
        self._ticket = ticket

    def done(self) -> bool:
        """Whether `result` would return at once."""
        return self._ticket.done()

    def result(self) -> SentMessage:
        """Returns when the message is stored; raises why it was not."""
        return self._bridge.call(self._ticket.outcome)
