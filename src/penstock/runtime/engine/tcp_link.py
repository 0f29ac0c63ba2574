"""The link to a node in another process: one TCP connection that is reopened when it is lost.

Without a connection, and for all requests in progress when it was lost, the answer is `unreachable`: callers try again,
and nothing accumulates here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Iterable

from penstock.config.address import Address
from penstock.frontend.engine import Answered
from penstock.frontend.telling import tell
from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.cluster.streams import Trusting, dial
from penstock.runtime.engine.correlation import Correlation, unreachable
from penstock.steps.step import Reply
from penstock.streams.framed import FramedConnection
from penstock.streams.waiting import came
from penstock.wire.backoff import NODE_LINK
from penstock.wire.credentials import Credentials, Prove
from penstock.wire.frames import Frame
from penstock.wire.greeting import Greeting
from penstock.wire.handshake import NONCE_BYTES, ClientHandshake, HandshakeError
from penstock.wire.liveness import Liveness, Sign
from penstock.wire.messages import SERVICE, Answer, Hello, Ping, Request, Unsubscribe, Welcome

logger = logging.getLogger(__name__)

GREETING_SECONDS = 5.0
SILENT_SECONDS = 5.0
"""A back end that sends nothing for so long while a request is pending is pinged; after twice as long the connection is
closed.
"""
OUTSTANDING_BYTES = 64 * limits.MEBIBYTE
"""Of bodies that were sent and have no answer; beyond, asking is refused as overloaded."""


class TcpLink:
    """Asks a node over TCP. `start` it, and `close` it at the end."""

    def __init__(
        self,
        address: Address,
        loop: asyncio.AbstractEventLoop,
        *,
        name: str = "penstock-frontend",
        outstanding_bytes: int = OUTSTANDING_BYTES,
        secret: bytes | None = None,
        tls: Trusting | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._address = address
        self._loop = loop
        self._name = name
        self._secret = secret
        """The cluster's secret, which both sides must prove to know; None: no proof."""
        self._tls = tls
        self._credentials = credentials
        """The credentials for a server with users."""
        self._outstanding_bytes = outstanding_bytes
        self._correlation = Correlation()
        self._connection: FramedConnection | None = None
        self._connections = 0
        self._found = asyncio.Event()
        self._sign_of_life = asyncio.Event()
        self._reason = self._ended_because = "it was not looked for yet"
        self._seeking: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._liveness = Liveness()
        self._welcome: Welcome | None = None
        """The last welcome of the back end."""
        self._closed = False

    @property
    def connected(self) -> bool:
        """Whether the back end can be asked right now."""
        return self._connection is not None

    @property
    def incarnation(self) -> int:
        """The number of the connection over which the back end can be asked now; 0: there is none."""
        return self._connections if self._connection is not None else 0

    def start(self) -> None:
        """Looks for the back end from now on, until the link is closed."""
        if self._seeking is None and not self._closed:
            self._seeking = self._loop.create_task(self._seek(), name="penstock looks for its back end")

    def look_now(self) -> None:
        """The back end has given a sign of life: it is looked for at once, however long the pause would have been."""
        self._sign_of_life.set()

    async def found(self) -> None:
        """Returns when there is a connection."""
        await self._found.wait()

    async def close(self) -> None:
        """Ends the connection; everything outstanding fails."""
        self._closed = True
        seeking = self._seeking
        if seeking is not None:
            seeking.cancel()
            await asyncio.gather(seeking, return_exceptions=True)
        if self._connection is not None:
            self._connection.abort(ConnectionError("the front end is stopping"))

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        """See `EngineLink`."""
        connection, correlation = self._connection, self._correlation
        if connection is None:
            return self._refuse(done, unreachable(self._reason))
        if correlation.outstanding_bytes + len(body) > self._outstanding_bytes and correlation:
            message = "the back end has more to answer than the front end may hold"
            return self._refuse(done, PenstockError(ErrorCode.OVERLOADED, message))
        ticket, frame = correlation.ask(request, body, done)
        connection.write(frame)
        return ticket

    def cancel(self, ticket: int) -> None:
        """See `EngineLink`."""
        if self._connection is not None and ticket in self._correlation:
            self._post(self._connection, Unsubscribe(ticket))

    def _post(self, connection: FramedConnection, request: Request) -> None:
        """Sends a request whose answer is ignored."""
        connection.write(self._correlation.ask(request, b"", _ignored)[1])

    def _refuse(self, done: Answered, error: PenstockError) -> int:
        self._loop.call_soon(tell, done, error)
        return self._correlation.next_id()

    # -- connecting ------------------------------------------------------------------------------------------

    async def _seek(self) -> None:
        try:
            pauses = NODE_LINK.begin(random.Random())
            while True:
                self._sign_of_life.clear()
                try:
                    await self._connect()
                except (OSError, PenstockError, HandshakeError) as error:
                    self._failed_to_connect(str(error) or type(error).__name__)
                    if await came(self._sign_of_life, pauses.pause()):
                        pauses.reset()
                else:
                    return
        finally:
            self._seeking = None

    async def _connect(self) -> None:
        """Raises `OSError` (`TimeoutError` included), `PenstockError` or `HandshakeError`; then nothing is left behind."""
        loop = self._loop
        handshake = (
            ClientHandshake(self._secret, SERVICE, os.urandom(NONCE_BYTES), str(self._address))
            if self._secret
            else None
        )
        connection = FramedConnection(self, loop, handshake, gathers=True)
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                await dial(lambda: connection, self._address.host, self._address.port, self._tls)
                await connection.authenticated()
                self._check_alive(connection)
                welcome = await self._greeted(connection)
                self._check_alive(connection)
        except BaseException as error:
            connection.abort(ConnectionError("given up"))
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"no answer within {GREETING_SECONDS:g} s") from None
            raise
        self._connection = connection
        self._connections += 1
        self._welcome = welcome
        self._liveness.reset()
        self._watch = loop.call_later(SILENT_SECONDS, self._look_alive)
        self._found.set()
        logger.info(
            "connected to the node at %(address)s (%(server)s)",
            {"address": self._address, "server": welcome.server},
        )

    def _check_alive(self, connection: FramedConnection) -> None:
        """Raises if the connection ended after its last message and before that was handled: its end is reported only once."""
        if not connection.alive:
            raise PenstockError(ErrorCode.UNREACHABLE, self._ended_because)

    async def _greeted(self, connection: FramedConnection) -> Welcome:
        """The server's welcome; raises where it is none, or says that we are not welcome."""
        proven = self._welcome is not None and bool(self._welcome.proof)
        nonce = os.urandom(NONCE_BYTES)
        greeting = Greeting(self._name, self._credentials, nonce, self._address, must_prove=proven)
        said: Hello | Prove | Welcome = greeting.hello()
        while not isinstance(said, Welcome):
            said = greeting.heard(await self._said(connection, said), connection.peer, connection.channel)
        return said

    async def _said(self, connection: FramedConnection, request: Hello | Prove) -> Answer:
        answered: asyncio.Future[Reply | PenstockError] = self._loop.create_future()

        def done(outcome: Reply | PenstockError) -> None:
            if not answered.done():
                answered.set_result(outcome)

        connection.write(self._correlation.ask(request, b"", done)[1])
        outcome = await answered
        if isinstance(outcome, PenstockError):
            raise outcome
        return outcome.answer

    def _failed_to_connect(self, reason: str) -> None:
        """Says why once, not at every attempt."""
        if reason != self._reason:
            self._reason = reason
            logger.warning(
                "cannot reach the node at %(address)s: %(error)s; retrying",
                {"address": self._address, "error": reason},
            )

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        """Called by the connection: answers arrived."""
        try:
            for request_id, head, body, _ in frames:
                self._correlation.answered(request_id, head, body)
        except PenstockError as error:
            connection.abort(error)

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
        """Called by the connection: it has ended, greeted or not."""
        reason = self._ended_because = str(error) if error is not None else "it closed the connection"
        was_found = connection is self._connection
        self._connection = None
        self._found.clear()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if was_found:
            self._reason = reason
            if not self._closed:
                logger.warning(
                    "lost the connection to the node at %(address)s: %(error)s; reconnecting",
                    {"address": self._address, "error": reason},
                )
                self.start()
        # Later, because the end may be noticed in the middle of a request; new requests are not lost with the connection.
        self._loop.call_soon(self._correlation.lose, reason)
        self._correlation = self._correlation.successor()

    def _look_alive(self) -> None:
        connection = self._connection
        if connection is None:
            return
        self._watch = self._loop.call_later(SILENT_SECONDS, self._look_alive)
        heard, connection.heard = connection.heard, False
        match self._liveness.look(heard=heard, waits=bool(len(self._correlation))):
            case Sign.PROBE:
                self._post(connection, Ping())
            case Sign.GIVE_UP:
                connection.abort(TimeoutError(f"silent for {2 * SILENT_SECONDS:g} s"))
            case Sign.LIVES:
                pass


def _ignored(outcome: object) -> None:
    pass
