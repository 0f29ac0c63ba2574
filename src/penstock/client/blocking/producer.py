"""The producer of the blocking client. Crossing to the event loop costs tens of µs a call: prefer `send_many`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from types import TracebackType
from typing import Self

from penstock.client.blocking.bridge import Bridge
from penstock.client.outgoing import Sendable
from penstock.client.parcel import FailedBatch, Ticket
from penstock.client.producer import Producer
from penstock.client.sent import SentMessage

MESSAGES_PER_CROSSING = 10_000


class BlockingTicket:
    """A message on its way."""

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


class BlockingProducer:
    """Sends many messages quickly; made by `queue.producer()`. Several threads may use one."""

    def __init__(self, bridge: Bridge, producer: Producer) -> None:
        self._bridge = bridge
        self._producer = producer

    def send(self, message: Sendable) -> BlockingTicket:
        """Takes a message; waits only for room. Ask the ticket to know that it is stored."""
        return BlockingTicket(self._bridge, self._bridge.call(self._producer.send, message))

    def send_many(self, messages: Iterable[Sendable]) -> None:
        """Takes any number of messages, in order; far quicker than `send` for each."""
        source = iter(messages)  # read on the caller's thread: a generator may do anything
        while chunk := list(islice(source, MESSAGES_PER_CROSSING)):
            self._bridge.call(self._producer.send_many, chunk)

    def flush(self) -> None:
        """Returns when everything taken so far is stored; raises `ProducerError` with what was not."""
        self._bridge.call(self._producer.flush)

    def take_failures(self) -> list[FailedBatch]:
        """What failed since somebody was last told, and forgets it."""
        return self._bridge.call_plain(self._producer.take_failures)

    def close(self) -> None:
        """Flushes; takes no more messages."""
        self._bridge.call(self._producer.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bridge.call(self._producer.__aexit__, kind, error, trace)
