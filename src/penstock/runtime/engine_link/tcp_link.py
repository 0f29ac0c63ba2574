"""The link to a node in another process: one TCP connection that is looked for again when it is lost.

While there is no connection, and for everything that was under way when it was lost, the answer is `unreachable`:
callers try again, and nothing piles up here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Iterator

from penstock.config.address import Address
from penstock.frontend.engine import Answered
from penstock.frontend.steps import Reply
from penstock.frontend.telling import tell
from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.cluster_streams import Trusting, dial
from penstock.runtime.engine_link.backend_connection import BackendConnection
from penstock.runtime.engine_link.correlation import Correlation, unreachable
from penstock.wire.credentials import Credentials, Prove, check_server, client_proof
from penstock.wire.handshake import NONCE_BYTES, ClientHandshake, HandshakeError
from penstock.wire.messages import (
    PROTOCOL_VERSION,
    SERVICE,
    Answer,
    Challenge,
    Hello,
    Ping,
    Request,
    Unsubscribe,
    Welcome,
)

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
GREETING_SECONDS = 5.0
SILENT_SECONDS = 5.0
"""A back end that says nothing for so long while something is asked is pinged; twice as long, and it is given up."""
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
        """Of the cluster: the node must prove that it knows it, and so do we; None: nobody proves anything."""
        self._tls = tls
        self._credentials = credentials
        """What is shown to a server that asks who is there."""
        self._outstanding_bytes = outstanding_bytes
        self._correlation = Correlation()
        self._connection: BackendConnection | None = None
        self._connections = 0
        self._found = asyncio.Event()
        self._sign_of_life = asyncio.Event()
        self._reason = "it was not looked for yet"
        self._seeking: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._probed = False
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
            self._connection.end("the front end is stopping")

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
            self._connection.post(Unsubscribe(ticket))

    def _refuse(self, done: Answered, error: PenstockError) -> int:
        self._loop.call_soon(tell, done, error)
        return self._correlation.next_id()

    # -- connecting ------------------------------------------------------------------------------------------

    async def _seek(self) -> None:
        try:
            pauses = _pauses()
            while True:
                self._sign_of_life.clear()
                try:
                    await self._connect()
                except (OSError, PenstockError, HandshakeError) as error:
                    self._failed_to_connect(str(error) or type(error).__name__)
                    if await self._sign_of_life_within(next(pauses)):
                        pauses = _pauses()
                else:
                    return
        finally:
            self._seeking = None

    async def _sign_of_life_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._sign_of_life.wait()
        except TimeoutError:
            return False

    async def _connect(self) -> None:
        """Raises `OSError` (`TimeoutError` included) or `PenstockError`; then nothing is left behind."""
        loop = self._loop
        handshake = ClientHandshake(self._secret, SERVICE, os.urandom(NONCE_BYTES)) if self._secret else None
        connection = BackendConnection(self._correlation, loop, self._lost, handshake)
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                await dial(lambda: connection, self._address.host, self._address.port, self._tls)
                await _introduced(connection)
                _check_alive(connection)
                welcome = await self._greeted(connection)
                _check_alive(connection)
        except BaseException as error:
            connection.end("given up")
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"no answer within {GREETING_SECONDS:g} s") from None
            raise
        self._connection = connection
        self._connections += 1
        self._probed = False
        self._watch = loop.call_later(SILENT_SECONDS, self._look_alive)
        self._found.set()
        log.info("connected to the back end %s (%s)", self._address, welcome.server)

    async def _greeted(self, connection: BackendConnection) -> Welcome:
        """The server's welcome; raises where it is none, or says that we are not welcome."""
        shown = self._credentials
        nonce = os.urandom(NONCE_BYTES) if shown is not None else b""
        hello = Hello([PROTOCOL_VERSION], self._name, shown.access_key if shown is not None else "", nonce)
        answer = await self._said(connection, hello)
        challenge: bytes | None = None
        if isinstance(answer, Challenge) and shown is not None:
            challenge = answer.nonce
            proof = client_proof(shown.secret, shown.access_key, challenge, nonce)
            answer = await self._said(connection, Prove(proof))
        if isinstance(answer, Welcome) and shown is not None:
            check_server(shown, challenge, nonce, answer.proof, self._address, connection.peer)
        if not isinstance(answer, Welcome):
            raise PenstockError(ErrorCode.BAD_FRAME, "what listens there is no Penstock server")
        return answer

    async def _said(self, connection: BackendConnection, request: Hello | Prove) -> Answer:
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
            log.warning("cannot reach the back end %s: %s; trying again", self._address, reason)

    def _lost(self, connection: BackendConnection, reason: str) -> None:
        """A connection has ended, greeted or not."""
        was_found = connection is self._connection
        self._connection = None
        self._found.clear()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if was_found:
            self._reason = reason
            if not self._closed:
                log.warning("lost the back end %s: %s; connecting again", self._address, reason)
                self.start()
        # Later, because the end may be noticed in the middle of asking; what is asked meanwhile is not lost with it.
        self._loop.call_soon(self._correlation.lose, reason)
        self._correlation = self._correlation.successor()

    def _look_alive(self) -> None:
        connection = self._connection
        if connection is None:
            return
        self._watch = self._loop.call_later(SILENT_SECONDS, self._look_alive)
        if connection.heard or not len(self._correlation):
            connection.heard = False
            self._probed = False
        elif self._probed:
            connection.end(f"silent for {2 * SILENT_SECONDS:g} s")
        else:
            self._probed = True
            connection.post(Ping())


async def _introduced(connection: BackendConnection) -> None:
    """Returns when both sides have proven who they are; raises `PenstockError` where the connection ended instead."""
    await asyncio.wait([connection.introduced])
    if connection.introduced.cancelled():
        reason = (
            "the connection ended before both sides had proven that they know the cluster's secret (it may have another "
            "one, or not take our certificate)"
        )
        raise PenstockError(ErrorCode.UNREACHABLE, reason)


def _check_alive(connection: BackendConnection) -> None:
    """Raises where the connection ended after its last word and before that was heeded: its end is told only once."""
    if connection.ended_because is not None:
        raise PenstockError(ErrorCode.UNREACHABLE, connection.ended_because)


def _pauses() -> Iterator[float]:
    """Doubling, each cut by up to a half, so that many front ends do not march in step."""
    ceiling = FIRST_PAUSE_SECONDS
    while True:
        yield ceiling * random.uniform(0.5, 1.0)
        ceiling = min(2 * ceiling, LONGEST_PAUSE_SECONDS)
