"""HTTP/1.1 connections of the load: keep-alive, one request under way, as little of a client as there can be.

Both processes share the machine with the server, so what is spent here is taken from what is measured.
"""

from __future__ import annotations

import asyncio
import socket
from types import TracebackType
from typing import Protocol, Self, cast

from benchmarks.sqs.answers import WrongAnswer, body_of
from benchmarks.sqs.tasks import Endpoint

_TIMEOUT_SECONDS = 30.0
_READ_BYTES = 256 * 1024


class Exchange(Protocol):
    """What is said on a connection."""

    def begin(self, connection: Connection) -> None:
        """The connection stands."""

    def answered(self, connection: Connection, body: bytes) -> None:
        """The request under way was answered with success; raises when the answer is wrong."""

    def failed(self, error: Exception) -> None:
        """The connection is lost, or what it said was wrong."""


class Connection(asyncio.Protocol):
    """One connection of many; what is said on it, the exchange decides."""

    __slots__ = ("_exchange", "_parts", "_transport", "ended", "state", "write")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._parts = b""
        self.ended = False
        self.state: object = None
        """The exchange's own note of where this connection is."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.write = self._transport.write
        self._exchange.begin(self)

    def data_received(self, data: bytes) -> None:
        """Most answers come in one piece."""
        if self._parts:
            data = self._parts + data
        try:
            body = body_of(data)
            if body is None:
                self._parts = data
                return
            self._parts = b""
            self._exchange.answered(self, body)
        except Exception as error:
            self.ended = True
            self._exchange.failed(error)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended:
            self._exchange.failed(error or ConnectionError("the server closed a connection"))

    def close(self) -> None:
        """Nothing more is to be said."""
        self.ended = True
        self._transport.close()


class BlockingConnection:
    """One connection that waits for each answer: the least latency a client can add."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.socket = socket.create_connection((endpoint.host, endpoint.port), timeout=_TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        """The body of the answer."""
        self.send(request)
        return self.answer()

    def send(self, request: bytes) -> None:
        """Asks without waiting."""
        self.socket.sendall(request)

    def answer(self) -> bytes:
        """Waits for the answer to what was sent."""
        received = b""
        while True:
            data = self.socket.recv(_READ_BYTES)
            if not data:
                raise WrongAnswer("the server closed the connection instead of answering")
            received += data
            body = body_of(received)
            if body is not None:
                return body

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
