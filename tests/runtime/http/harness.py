"""What the tests of the HTTP server share: a raw client, a handler that a test answers for, and both event loops."""

from __future__ import annotations

import asyncio
import functools
import inspect
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop

from penstock.runtime.http.connection import HttpConnection
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.server import HttpServer
from penstock.runtime.http.server_state import Handler, Refuse
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from tests.runtime.harness import until

TEST_SECONDS = 120
"""However busy the machine is."""

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.new_event_loop,
}


def on_both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs a coroutine function as a test on each event loop; whatever the loop is left to report fails it."""

    @functools.wraps(test)
    def run(*arguments: Any, loop_name: str, **fixtures: Any) -> None:
        run_on(loop_name, functools.partial(test, *arguments, **fixtures))

    signature = inspect.signature(test)
    own = inspect.Parameter("loop_name", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]  # for pytest's fixtures
        parameters=[*signature.parameters.values(), own]
    )
    on_each: Callable[..., None] = pytest.mark.parametrize("loop_name", list(LOOPS))(run)
    return on_each


def run_on(loop_name: str, test: Callable[[], Awaitable[None]]) -> None:
    """Runs a coroutine function, and fails with what the event loop had to report."""
    reports: list[dict[str, Any]] = []

    async def within_time() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        async with asyncio.timeout(TEST_SECONDS):
            await test()

    with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
        runner.run(within_time())
    assert reports == []


# -- the server --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(
    handler: Handler, *, refuse: Refuse | None = None, tls: ssl.SSLContext | None = None, **limits: Any
) -> AsyncIterator[Served]:
    """A server on a free port of loopback, whose deadlines know only the time that the test lets pass."""
    server = HttpServer(handler, limits=HttpLimits(**limits), refuse=refuse)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    await server.start(listener, tls)
    served = Served(server, port)
    server.deadlines.now = lambda: served.now
    server.deadlines.sweep()
    try:
        yield served
    finally:
        for client in served.clients:
            client.writer.transport.abort()
        server.drop_all()
        await until(lambda: not server.connections)
        assert server.budget.used_bytes == 0


@dataclass
class Served:
    """A server and the clients that a test made for it."""

    server: HttpServer
    port: int
    clients: list[Client] = field(default_factory=list)
    now: float = 1000.0

    def pass_time(self, seconds: float) -> None:
        """Lets time pass for the deadlines, and for nothing else."""
        self.now += seconds
        self.server.deadlines.sweep()

    async def connection(self) -> HttpConnection:
        """The server's side of the only client."""
        await until(lambda: len(self.server.connections) == 1)
        connection = next(iter(self.server.connections))
        assert isinstance(connection, HttpConnection)
        return connection

    async def client(
        self, tls: ssl.SSLContext | None = None, server_name: str | None = None, receive_buffer: int = 0
    ) -> Client:
        """A new connection."""
        raw = socket.socket()
        if receive_buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(
            sock=raw, ssl=tls, server_hostname=server_name, limit=65536
        )
        client = Client(reader, writer)
        self.clients.append(client)
        return client


# -- the handler -------------------------------------------------------------------------------------------------


def answer(body: bytes | str = b"", status: int = 200, **headers: str) -> HttpResponse:
    """An answer in plain text."""
    raw = body.encode() if isinstance(body, str) else body
    return HttpResponse(status, (("Content-Type", "text/plain"), *headers.items()), raw)


def echo(request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]) -> None:
    """Answers at once with the method, the path and the body."""
    reply(answer(f"{request.method} {request.path} ".encode() + request.body))


@dataclass
class Visit:
    """A request that a test answers."""

    request: HttpRequest
    peer: Peer
    reply: Callable[[HttpResponse], None]
    cancelled: int = 0

    def cancel(self) -> None:
        self.cancelled += 1


class HeldRequests:
    """A handler that keeps its visits until the test answers them."""

    def __init__(self, *, cancellable: bool = True) -> None:
        self.visits: list[Visit] = []
        self._cancellable = cancellable

    def __call__(
        self, request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]
    ) -> Callable[[], None] | None:
        visit = Visit(request, peer, reply)
        self.visits.append(visit)
        return visit.cancel if self._cancellable else None

    async def visit(self, number: int) -> Visit:
        """The visit with this number, when it has come."""
        await until(lambda: len(self.visits) > number)
        return self.visits[number]


# -- the client --------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    """What a client was told."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The header of this name, which must not be there twice."""
        values = [value for key, value in self.headers if key.lower() == name]
        assert len(values) <= 1, f"{name} is there {len(values)} times"
        return values[0] if values else None


class Client:
    """Says exactly what it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes | str) -> None:
        if not self.writer.transport.is_closing():
            self.writer.write(data.encode("latin-1") if isinstance(data, str) else data)

    def request(self, target: str = "/", body: bytes = b"", method: str = "POST", headers: str = "") -> None:
        """Sends a well-formed request."""
        self.send(request_bytes(target, body, method, headers))

    async def answer(self, *, bodiless: bool = False) -> Answer:
        """The next answer, checked for its form."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        version, status = lines[0].split(" ")[:2]
        assert version == "HTTP/1.1"
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines[1:])]
        received = Answer(int(status), headers, b"")
        if received.status == 100:
            return received
        length = received.header("content-length")
        assert received.header("date")
        if length is not None and not bodiless:
            received.body = await self.reader.readexactly(int(length))
        return received

    async def answers(self, count: int) -> list[Answer]:
        return [await self.answer() for _ in range(count)]

    async def ended(self) -> bytes:
        """What the server still says before it closes."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    def half_close(self) -> None:
        if not self.writer.transport.is_closing():
            self.writer.write_eof()

    def close(self) -> None:
        self.writer.close()


def request_bytes(target: str = "/", body: bytes = b"", method: str = "POST", headers: str = "") -> bytes:
    """A well-formed request; `headers` are whole lines."""
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body
