"""The exchanges of one connection: requests in progress, and their answers, which leave in the order of the requests."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from penstock.runtime.http.answers import CLOSE, KEEP_ALIVE, encode_answer, plain_refusal
from penstock.runtime.http.server_state import Connection, HttpServerState
from penstock.sqs.protocols.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)

REFUSED_STATUS = 400
"""From here on an answer is a refusal."""
UNSENT_BYTES = 64 * 1024
"""More than this does not wait for the end of the turn, so that a client which does not read is noticed."""
FAILED = "The request failed inside the server; its log says why."

Cancel = Callable[[], None]


class Exchange:
    """One request and its answer, which may come at once or much later: a place in the order of answers of a connection.

    It first waits with its request, then is in progress, and is neither when its answer is written or its client is gone.
    """

    __slots__ = (
        "bodiless",
        "cancel",
        "exchanges",
        "keep_alive",
        "linger",
        "old_version",
        "request",
        "response",
        "size",
    )

    def __init__(
        self, request: HttpRequest | None, keep_alive: bool, old_version: bool, bodiless: bool
    ) -> None:
        self.request = request
        """The request for the handler; a refusal never has one."""
        self.keep_alive = keep_alive
        self.old_version = old_version
        """Whether the client uses HTTP/1.0."""
        self.bodiless = bodiless
        """Whether the answer is to HEAD."""
        self.linger = False
        """Whether the client may still be sending data that is not read."""
        self.size = 0
        """Its size in the budget of all connections."""
        self.exchanges: Exchanges | None = None
        """Those of its connection, while it is under way."""
        self.response: HttpResponse | None = None
        self.cancel: Cancel | None = None

    def reply(self, response: HttpResponse) -> None:
        """Takes the answer; only the first counts, and none once the client is gone."""
        exchanges = self.exchanges
        if exchanges is None or self.response is not None:
            return
        self.response = response
        exchanges.answered(self)

    def abandon(self) -> None:
        """The client is gone: the handler may stop working on the answer."""
        self.exchanges = None
        cancel, self.cancel = self.cancel, None
        if cancel is not None and self.response is None:
            try:
                cancel()
            except Exception:
                logger.exception("could not cancel a request: this is a defect of Penstock; please report it")


class Exchanges:
    """The exchanges of one connection, in the order of their requests."""

    __slots__ = (
        "_connection",
        "_server",
        "_size",
        "_unsent",
        "_unsent_bytes",
        "sent_unread_bytes",
        "served",
        "under_way",
        "unread",
        "used_at",
    )

    def __init__(self, connection: Connection, server: HttpServerState) -> None:
        self._connection = connection
        self._server = server
        self._size = 0
        """The size of requests and answers in the budget of all connections."""
        self._unsent: list[bytes] = []
        """Bytes that wait until all answers of this turn are made."""
        self._unsent_bytes = 0
        self.under_way: deque[Exchange] = deque()
        self.unread = False
        """Whether the client has more to read than it may leave lying about."""
        self.sent_unread_bytes = 0
        """Bytes sent since the last check of the client's progress."""
        self.used_at = 0.0
        """When an answer was sent last."""
        self.served = False
        """Whether any of them was no refusal."""

    @property
    def full(self) -> bool:
        """Whether no further request may join."""
        limits = self._server.limits
        return self.unread or len(self.under_way) >= limits.pipelined or self._size > limits.body_bytes

    def count(self, exchange: Exchange, size: int) -> None:
        """The memory of an exchange while it is here."""
        exchange.size += size
        self._size += size
        self._server.budget.count(size)

    def _uncount(self, exchange: Exchange) -> None:
        self._size -= exchange.size
        self._server.budget.count(-exchange.size)
        exchange.size = 0

    def end(self) -> None:
        """The connection is gone, and nothing that was under way is for it."""
        del self._connection

    # -- answers ---------------------------------------------------------------------------------------------

    def answered(self, exchange: Exchange) -> None:
        """An answer is there: it leaves when it is its turn, and makes room for what waits."""
        under_way = self.under_way
        if under_way[0] is not exchange:
            if exchange.response is not None:
                self.count(exchange, len(exchange.response.body))
            return
        self._write(under_way.popleft())
        while under_way and under_way[0].response is not None:
            self._write(under_way.popleft())
        self._connection.has_room()

    def _write(self, exchange: Exchange) -> None:
        server, connection, response = self._server, self._connection, exchange.response
        exchange.exchanges = exchange.cancel = None
        if size := exchange.size:
            self._size -= size
            server.budget.count(-size)
        close = not exchange.keep_alive or ((server.stopping or connection.ended) and not connection.begun)
        line = CLOSE if close else KEEP_ALIVE if exchange.old_version else ""
        try:
            assert response is not None, "only what is answered is written"
            encoded = encode_answer(response, server.date_line, line, exchange.bodiless)
            self.served = self.served or response.status < REFUSED_STATUS
        except Exception:
            logger.exception(
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
            self._server.writes(self.write_out)
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
        for place, exchange in enumerate(self.under_way):
            if exchange.response is None and exchange.cancel is not None:
                return place
        return None

    def abandon(self, kept: int) -> None:
        """Drops the answers except the first ones, because the client is gone."""
        abandoned = []
        while len(self.under_way) > kept:
            exchange = self.under_way.pop()
            self._uncount(exchange)
            abandoned.append(exchange)
        for exchange in reversed(abandoned):
            exchange.abandon()
