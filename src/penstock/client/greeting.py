"""Makes one connection and greets the server on it. Says why it failed; whether to try again is the link's choice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from penstock.client.address import Address
from penstock.client.call import unexpected
from penstock.client.connection import Connection, Receiver
from penstock.client.failure import error_of
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.messages import PROTOCOL_VERSION, Failed, Hello, Welcome, decode_answer, encode_message

_REQUEST_ID = 1


class _Greeter:
    """Owns a connection until the server has answered the greeting."""

    def __init__(self, welcome: asyncio.Future[Welcome]) -> None:
        self._welcome = welcome

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
            elif isinstance(answer, Welcome) and not self._welcome.done():
                self._welcome.set_result(answer)
            else:
                self._fail(unexpected(answer))

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        self._fail(error or ConnectionError("the server closed the connection"))

    def _fail(self, error: Exception) -> None:
        if not self._welcome.done():
            self._welcome.set_exception(error)


async def connect_and_greet(
    address: Address, name: str, seconds: float, receiver: Receiver, loop: asyncio.AbstractEventLoop
) -> tuple[Connection, Welcome]:
    """A connection that `receiver` owns, and the server's greeting.

    Raises `OSError` (`TimeoutError` included) or `PenstockError`; then nothing is left behind.
    """
    greeting: asyncio.Future[Welcome] = loop.create_future()
    connection = Connection(_Greeter(greeting), loop)
    try:
        async with asyncio.timeout(seconds):
            await loop.create_connection(lambda: connection, address.host, address.port)
            hello = encode_message(Hello([PROTOCOL_VERSION], name))
            connection.write(encode_frame(_REQUEST_ID, hello))
            welcome = await greeting
        if not connection.alive:
            raise ConnectionError("the server closed the connection")
    except BaseException as error:
        connection.abort(ConnectionError("given up"))
        if greeting.done() and not greeting.cancelled():
            greeting.exception()  # what is raised here says it all
        if isinstance(error, TimeoutError):
            raise TimeoutError(f"no answer within {seconds:.3g} s") from None
        raise
    connection.receiver = receiver
    return connection, welcome
