"""A scripted peer: a server that speaks the protocol and does exactly what a test tells it, when it tells it.

Greetings, pings and lookups of queues are answered by itself (unless told not to); every other request waits in
line for the test, which answers it, leaves it unanswered, or cuts the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, Self, TypeVar, cast

import msgspec
import pytest
import uvloop

import penstock
from penstock import Client
from penstock.model.batch import Batch, encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.runs import count_of
from penstock.model.settings import QueueSettings
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.messages import (
    Answer,
    Delete,
    DeliveredBatch,
    Delivery,
    DescribeQueue,
    Done,
    Extend,
    Failed,
    Hello,
    Ping,
    QueueDescription,
    QueueStatistics,
    ReceiptOutcome,
    Release,
    Request,
    Send,
    SendResult,
    Settled,
    Unsubscribe,
    Welcome,
    decode_request,
    encode_message,
)
from tests.ports import free_port

R = TypeVar("R")

TEST_SECONDS = 120
"""However busy the machine is."""
NO_STATISTICS = msgspec.convert([0] * 6 + [None] + [0] * 11, QueueStatistics)


def async_test(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs a coroutine function as a test, under asyncio's own loop and under uvloop."""

    @pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )
    @functools.wraps(test)
    def run(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        async def within_time() -> None:
            async with asyncio.timeout(TEST_SECONDS):
                await test()

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(within_time())

    del run.__wrapped__  # pytest would look for fixtures there
    return cast(Callable[..., None], run)


class Seen(Generic[R]):
    """A request that arrived, and the means to answer it."""

    def __init__(self, connection: PeerConnection, request_id: int, request: R, body: bytes) -> None:
        self.connection = connection
        self.request_id = request_id
        self.request = request
        self.body = body

    def answer(self, answer: Answer, body: bytes = b"") -> None:
        self.connection.send(self.request_id, answer, body)

    def refuse(self, code: ErrorCode, message: str = "refused") -> None:
        self.answer(Failed(code, message))

    # -- the answers most tests give -------------------------------------------------------------------------

    def stored(self, first: int = 1) -> None:
        self.answer(SendResult([(first, Batch(self.body).count)], [], 1_000))

    def deliver(self, first: int, bodies: Sequence[bytes], token: bytes = b"token") -> None:
        batch = encode_parts(bodies)
        head = DeliveredBatch(first, len(bodies), 1_000, len(batch), 1, 2_000)
        self.answer(Delivery(token, 31_000, [head]), batch)

    def settled(self, *outcomes: ReceiptOutcome) -> None:
        self.answer(Settled(list(outcomes)))


class PeerConnection(asyncio.Protocol):
    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.reader = FrameReader()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer.connections.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.peer.connections.remove(self)
        self.peer.lost.set()

    def data_received(self, data: bytes) -> None:
        for frame in self.reader.feed(data):
            self.peer.take(Seen(self, frame.request_id, decode_request(frame.head), bytes(frame.body)))

    def send(self, request_id: int, answer: Answer, body: bytes = b"") -> None:
        self.write(b"".join(encode_frame(request_id, encode_message(answer), [body])))

    def write(self, data: bytes) -> None:
        if self.peer.one_byte_at_a_time:
            for index in range(len(data)):
                self.transport.write(data[index : index + 1])
        else:
            self.transport.write(data)

    def cut(self) -> None:
        self.transport.abort()


@contextlib.asynccontextmanager
async def closing(peer: Peer, client: Client) -> AsyncIterator[None]:
    """At the end the peer answers what the client still asks, and the client is closed."""
    try:
        yield
    finally:
        peer.polite = True
        while not peer.line.empty():
            peer.be_polite(peer.line.get_nowait())
        await client.close()


@contextlib.asynccontextmanager
async def connected(timeout: float = 30.0) -> AsyncIterator[tuple[Peer, Client]]:  # noqa: ASYNC109  # the word that users expect
    """A peer and a client of it; at the end the peer answers whatever the client still asks."""
    async with Peer() as peer:
        client = await penstock.connect(peer.url, timeout=timeout)
        async with closing(peer, client):
            yield peer, client


class Peer:
    def __init__(self) -> None:
        self.queues = {"orders": 7}
        self.visibility_timeout_ms = 30_000
        self.greets = True
        self.polite = False
        self.answers_pings = True
        self.one_byte_at_a_time = False
        self.hellos = 0
        self.pings = 0
        self.lookups = 0
        self.connections: list[PeerConnection] = []
        self.lost = asyncio.Event()
        self._changed: asyncio.Future[None] | None = None
        self.line: asyncio.Queue[Seen[Request]] = asyncio.Queue()
        self._server: asyncio.Server | None = None
        self.port = free_port()  # the same when it listens again
        self.next_sequence = 0
        self.partitions = 1
        self.damage: str | None = None

    @property
    def url(self) -> str:
        return f"penstock://127.0.0.1:{self.port}"

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: PeerConnection(self), "127.0.0.1", self.port)

    def hang_up(self) -> None:
        """Stops listening and cuts all connections."""
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        for connection in list(self.connections):
            connection.cut()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hang_up()

    # -- requests --------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when a request has made the condition true."""
        while not condition():
            self._changed = self._changed or asyncio.get_running_loop().create_future()
            await self._changed

    def take(self, seen: Seen[Request]) -> None:
        self._take(seen)
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    def _take(self, seen: Seen[Request]) -> None:
        match seen.request:
            case Hello():
                self.hellos += 1
                if self.greets:
                    seen.answer(Welcome(1, "peer", "node", 0))
            case Ping():
                self.pings += 1
                if self.answers_pings:
                    seen.answer(Done())
            case DescribeQueue(name):
                self.lookups += 1
                if name in self.queues:
                    seen.answer(self.description(name))
                else:
                    seen.refuse(ErrorCode.QUEUE_NOT_FOUND, f"no queue {name!r}")
            case _ if self.polite:
                self.be_polite(seen)
            case _:
                self.line.put_nowait(seen)

    def be_polite(self, seen: Seen[Request]) -> None:
        match seen.request:
            case Send():
                seen.stored()
            case Delete(receipts) | Release(receipts) | Extend(receipts):
                seen.settled(*[ReceiptOutcome(count_of(receipt.runs), 0, []) for receipt in receipts])
            case Unsubscribe():
                seen.answer(Done())
            case _:
                pass

    def description(self, name: str) -> QueueDescription:
        settings = QueueSettings(visibility_timeout_ms=self.visibility_timeout_ms, partitions=self.partitions)
        statistics = msgspec.structs.replace(NO_STATISTICS, next_sequence=self.next_sequence)
        return QueueDescription(self.queues[name], name, settings, 0, statistics, self.damage)

    async def next(self, kind: type[R]) -> Seen[R]:
        """The next request in line, which must be of that kind."""
        seen = await self.line.get()
        assert isinstance(seen.request, kind), f"expected {kind.__name__}, came {seen.request}"
        return seen  # type: ignore[return-value]  # the caller says which kind

    async def next_send(self) -> Seen[Send]:
        return await self.next(Send)

    def quiet(self) -> bool:
        """Whether no request is in line."""
        return self.line.empty()
