"""Opens one connection and greets the server on it. It reports why it failed; the link decides whether to try again."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable

import msgspec

from penstock.client.connection.address import Address
from penstock.client.connection.trust import why_not
from penstock.model.errors import ErrorCode, PenstockError
from penstock.streams.framed import FramedConnection, Receiver
from penstock.wire.credentials import NONCE_BYTES, Credentials, encode_proof
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.greeting import NO_SERVER, Greeting
from penstock.wire.messages import Welcome, decode_answer, encode_message

_REQUEST_ID = 1


class _Greeter:
    """Owns a connection until the server has answered the greeting."""

    def __init__(self, welcome: asyncio.Future[Welcome], greeting: Greeting) -> None:
        self._welcome = welcome
        self._greeting = greeting

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        for frame in frames:
            if self._welcome.done():
                return
            try:
                said = self._greeting.heard(decode_answer(frame.head), connection.peer, connection.channel)
            except msgspec.DecodeError as error:
                self._fail(PenstockError(ErrorCode.BAD_FRAME, f"{NO_SERVER}: {error}"))
            except PenstockError as error:
                self._fail(error)
            else:
                if isinstance(said, Welcome):
                    self._welcome.set_result(said)
                else:
                    connection.write(encode_frame(_REQUEST_ID, encode_proof(said.proof, said.channel)))

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
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
) -> tuple[FramedConnection, Welcome]:
    """A connection that `receiver` owns, and the server's greeting. `must_prove`: see `Greeting`.

    Raises `OSError` (`TimeoutError` included) or `PenstockError`; then nothing is left behind.
    """
    welcomed: asyncio.Future[Welcome] = loop.create_future()
    greeting = Greeting(name, credentials, os.urandom(NONCE_BYTES), address, must_prove=must_prove)
    connection = FramedConnection(_Greeter(welcomed, greeting), loop)
    try:
        async with asyncio.timeout(seconds):
            name_in_certificate = address.host if tls is not None else None
            await loop.create_connection(
                lambda: connection, address.host, address.port, ssl=tls, server_hostname=name_in_certificate
            )
            connection.write(encode_frame(_REQUEST_ID, encode_message(greeting.hello())))
            welcome = await welcomed
        if not connection.alive:
            raise ConnectionError("the server closed the connection")
    except BaseException as error:
        connection.abort(ConnectionError("given up"))
        if welcomed.done() and not welcomed.cancelled():
            welcomed.exception()  # this error already explains the failure
        if isinstance(error, TimeoutError):
            raise TimeoutError(f"no answer within {seconds:.3g} s") from None
        if isinstance(error, ssl.SSLError):
            raise why_not(error, address) from None
        raise
    connection.receiver = receiver
    return connection, welcome
