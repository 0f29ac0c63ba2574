"""Makes one connection and greets the server on it. Says why it failed; whether to try again is the link's choice."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable

import msgspec

from penstock.client.address import Address
from penstock.client.connection import Connection, Receiver
from penstock.client.failure import error_of
from penstock.client.trust import why_not
from penstock.client_core.call import unexpected
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.credentials import NONCE_BYTES, Credentials, check_server, client_proof, encode_proof
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.messages import (
    PROTOCOL_VERSION,
    Challenge,
    Failed,
    Hello,
    Welcome,
    decode_answer,
    encode_message,
)

_REQUEST_ID = 1


class _Greeter:
    """Owns a connection until the server has answered the greeting."""

    def __init__(
        self,
        welcome: asyncio.Future[Welcome],
        address: Address,
        credentials: Credentials | None,
        must_prove: bool,
    ) -> None:
        self._welcome = welcome
        self._must_prove = must_prove
        self._address = address
        self._credentials = credentials
        self._nonce = os.urandom(NONCE_BYTES) if credentials is not None else b""
        self._server_nonce: bytes | None = None

    def hello(self, name: str) -> bytes:
        """What is said first."""
        key = self._credentials.access_key if self._credentials is not None else ""
        return encode_message(Hello([PROTOCOL_VERSION], name, key, self._nonce))

    def frames_received(self, connection: Connection, frames: Iterable[Frame]) -> None:
        for frame in frames:
            try:
                answer = decode_answer(frame.head)
            except msgspec.DecodeError as error:
                self._fail(
                    PenstockError(ErrorCode.BAD_FRAME, f"what listens there is no Penstock server: {error}")
                )
                continue
            if isinstance(answer, Failed):
                self._fail(error_of(answer))
            elif isinstance(answer, Challenge) and self._credentials is not None and not self._server_nonce:
                self._server_nonce = answer.nonce
                key, secret = self._credentials
                proof = client_proof(secret, key, answer.nonce, self._nonce)
                connection.write(encode_frame(_REQUEST_ID, encode_proof(proof)))
            elif isinstance(answer, Welcome) and not self._welcome.done():
                self._welcomed(answer, connection.peer)
            else:
                self._fail(unexpected(answer))

    def _welcomed(self, welcome: Welcome, peer: str) -> None:
        if self._credentials is not None:
            try:
                near = "" if self._must_prove else peer
                check_server(
                    self._credentials, self._server_nonce, self._nonce, welcome.proof, self._address, near
                )
            except PenstockError as error:
                self._fail(error)
                return
        self._welcome.set_result(welcome)

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        self._fail(error or ConnectionError("the server closed the connection"))

    def _fail(self, error: Exception) -> None:
        if not self._welcome.done():
            self._welcome.set_exception(error)


async def connect_and_greet(
    address: Address,
    name: str,
    credentials: Credentials | None,
    seconds: float,
    receiver: Receiver,
    loop: asyncio.AbstractEventLoop,
    must_prove: bool = False,
    tls: ssl.SSLContext | None = None,
) -> tuple[Connection, Welcome]:
    """A connection that `receiver` owns, and the server's greeting. `must_prove`: it has shown before that it knows our secret,
    so that one that does not is another, also on this machine.

    Raises `OSError` (`TimeoutError` included) or `PenstockError`; then nothing is left behind.
    """
    greeting: asyncio.Future[Welcome] = loop.create_future()
    greeter = _Greeter(greeting, address, credentials, must_prove)
    connection = Connection(greeter, loop)
    try:
        async with asyncio.timeout(seconds):
            name_in_certificate = address.host if tls is not None else None
            await loop.create_connection(
                lambda: connection, address.host, address.port, ssl=tls, server_hostname=name_in_certificate
            )
            connection.write(encode_frame(_REQUEST_ID, greeter.hello(name)))
            welcome = await greeting
        if not connection.alive:
            raise ConnectionError("the server closed the connection")
    except BaseException as error:
        connection.abort(ConnectionError("given up"))
        if greeting.done() and not greeting.cancelled():
            greeting.exception()  # what is raised here says it all
        if isinstance(error, TimeoutError):
            raise TimeoutError(f"no answer within {seconds:.3g} s") from None
        if isinstance(error, ssl.SSLError):
            raise why_not(error, address) from None
        raise
    connection.receiver = receiver
    return connection, welcome
