"""The requests of one connection that are under way; their answers leave in the order of the requests."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Protocol

from penstock.runtime.http.answers import CLOSE, KEEP_ALIVE, encode_answer, plain_refusal
from penstock.runtime.http.exchange import Exchange
from penstock.runtime.http.house import House

log = logging.getLogger(__name__)

REFUSED_STATUS = 400
"""From here on an answer is a refusal."""
UNSENT_BYTES = 64 * 1024
"""More than this does not wait for the end of the turn, so that a client which does not read is noticed."""
FAILED = "The request failed inside the server; its log says why."


class Owner(Protocol):
    """A connection, as far as its exchanges know it."""

    transport: asyncio.Transport
    ended: bool
    """Whether the client said that it sends nothing more."""

    @property
    def address(self) -> str: ...
    @property
    def begun(self) -> bool: ...
    def has_room(self) -> None: ...
    def finish(self, *, linger: bool) -> None: ...


class UnderWay:
    """Exchanges in the order of their requests."""

    __slots__ = (
        "_connection",
        "_server",
        "_size",
        "_unsent",
        "_unsent_bytes",
        "exchanges",
        "sent_unread_bytes",
        "served",
        "unread",
        "used_at",
    )

    def __init__(self, connection: Owner, server: House) -> None:
        self._connection = connection
        self._server = server
        self._size = 0
        """What requests and answers count against the budget of all connections."""
        self._unsent: list[bytes] = []
        """What waits until all answers of this turn are made."""
        self._unsent_bytes = 0
        self.exchanges: deque[Exchange] = deque()
        self.unread = False
        """Whether the client has more to read than it may leave lying about."""
        self.sent_unread_bytes = 0
        """What was sent all the same since the client was looked at last."""
        self.used_at = 0.0
        """When an answer was sent last."""
        self.served = False
        """Whether any of them was no refusal."""

    @property
    def full(self) -> bool:
        """Whether no further request may join."""
        limits = self._server.limits
        return self.unread or len(self.exchanges) >= limits.pipelined or self._size > limits.body_bytes

    def count(self, exchange: Exchange, size: int) -> None:
        """What an exchange keeps in memory while it is here."""
        exchange.size += size
        self._size += size
        self._server.buffered_bytes += size

    def _uncount(self, exchange: Exchange) -> None:
        self._size -= exchange.size
        self._server.buffered_bytes -= exchange.size
        exchange.size = 0

    # -- answers ---------------------------------------------------------------------------------------------

    def answered(self, exchange: Exchange) -> None:
        """An answer is there: it leaves when it is its turn, and makes room for what waits."""
        exchanges = self.exchanges
        if exchanges[0] is not exchange:
            if exchange.response is not None:
                self.count(exchange, len(exchange.response.body))
            return
        self._write(exchanges.popleft())
        while exchanges and exchanges[0].response is not None:
            self._write(exchanges.popleft())
        self._connection.has_room()

    def _write(self, exchange: Exchange) -> None:
        server, connection, response = self._server, self._connection, exchange.response
        exchange.under_way = exchange.cancel = None
        if exchange.size:
            self._uncount(exchange)
        close = not exchange.keep_alive or ((server.stopping or connection.ended) and not connection.begun)
        line = CLOSE if close else KEEP_ALIVE if exchange.old_version else ""
        try:
            assert response is not None, "only what is answered is written"
            encoded = encode_answer(response, server.date_line, line, exchange.bodiless)
            self.served = self.served or response.status < REFUSED_STATUS
        except Exception:
            log.exception(
                "could not send an answer to %(address)s: this is a defect of Penstock; please report it",
                {"address": connection.address},
            )
            encoded = encode_answer(plain_refusal(500, FAILED), server.date_line, line, exchange.bodiless)
        self.used_at = server.deadlines.swept_at
        self.send(encoded)
        if close:
            connection.finish(linger=exchange.linger)

    def send(self, encoded: bytes | list[bytes]) -> None:
        """Sends at the end of the turn, or at once when it is much."""
        unsent = self._unsent
        if not unsent:
            self._server.writes(self)
        if isinstance(encoded, list):
            unsent += encoded
            self._unsent_bytes += sum(map(len, encoded))
        else:
            unsent.append(encoded)
            self._unsent_bytes += len(encoded)
        if self._unsent_bytes > UNSENT_BYTES:
            self.write_out()

    def write_out(self) -> None:
        """Gives everything that waits to the system in one go."""
        unsent = self._unsent
        if not unsent:
            return
        self._unsent = []
        if self.unread:
            self.sent_unread_bytes += self._unsent_bytes
        self._unsent_bytes = 0
        transport = self._connection.transport
        if transport.is_closing():
            return
        if len(unsent) == 1:
            transport.write(unsent[0])
        else:
            transport.writelines(unsent)

    # -- the end ---------------------------------------------------------------------------------------------

    def first_cancellable(self) -> int | None:
        """The place of the first request that can be cancelled; nothing after it can be answered without it."""
        for place, exchange in enumerate(self.exchanges):
            if exchange.response is None and exchange.cancel is not None:
                return place
        return None

    def abandon(self, kept: int) -> None:
        """Nobody is there any more to read the answers, but for those of the first ones."""
        abandoned = []
        while len(self.exchanges) > kept:
            exchange = self.exchanges.pop()
            self._uncount(exchange)
            abandoned.append(exchange)
        for exchange in reversed(abandoned):
            exchange.abandon()
