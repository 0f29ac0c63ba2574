"""Loads that keep many connections busy: sends, batches of sends, receives with deletes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from benchmarks.sqs import answers, bodies
from benchmarks.sqs.bodies import contents
from benchmarks.sqs.connection import Connection, Exchange
from benchmarks.sqs.signing import Signer
from benchmarks.sqs.tasks import Endpoint, ReceiveAndDelete, Send

RECEIVE_MESSAGES = 10
_TIMEOUT_SECONDS = 100.0


class Stream(ABC):
    """Work that several connections share; it is done when the last of them has nothing left to do."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open: set[Connection] = set()

    async def open(self, endpoint: Endpoint, connections: int) -> None:
        """Connects; nothing is asked yet."""
        await connect(endpoint, self.exchange(), connections)

    async def run(self) -> None:
        """From the first request to the last answer."""
        for connection in list(self._open):
            self.ask(connection)
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await self.done

    @abstractmethod
    def exchange(self) -> Exchange:
        """Itself, as connections see it."""

    @abstractmethod
    def ask(self, connection: Connection) -> None:
        """The next request on a connection, or its end."""

    def begin(self, connection: Connection) -> None:
        """One more connection stands."""
        self._open.add(connection)

    def end(self, connection: Connection) -> None:
        """One connection has nothing left to do."""
        connection.close()
        self._open.discard(connection)
        if not self._open and not self.done.done():
            self.done.set_result(None)

    def failed(self, error: Exception) -> None:
        """The first failure is the outcome."""
        if not self.done.done():
            self.done.set_exception(error)


async def connect(endpoint: Endpoint, exchange: Exchange, connections: int) -> list[Connection]:
    """Opens connections, a hundred at a time: more would overflow what a server lets wait."""
    loop = asyncio.get_running_loop()
    opened: list[Connection] = []
    while len(opened) < connections:
        portion = min(100, connections - len(opened))
        made = await asyncio.gather(
            *(
                loop.create_connection(lambda: Connection(exchange), endpoint.host, endpoint.port)
                for _ in range(portion)
            )
        )
        opened += [connection for _, connection in made]
    return opened


class PreparedStream(Stream):
    """Requests that were made before the clock started, each with what its answer is checked against."""

    def __init__(self, requests: list[tuple[bytes, object]], count: int) -> None:
        super().__init__()
        self._requests = requests
        self._left = count

    def ask(self, connection: Connection) -> None:
        if not self._left:
            self.end(connection)
            return
        self._left -= 1
        request, connection.state = self._requests[self._left % len(self._requests)]
        connection.write(request)


class Sending(PreparedStream):
    """SendMessage: every request was signed before the clock started."""

    def __init__(self, task: Send) -> None:
        signer = Signer(task.endpoint, "SendMessage")
        requests: list[tuple[bytes, object]] = [
            (signer.request(bodies.send_body(task.endpoint.queue_url, content)), answers.sent_mark(content))
            for content in contents(task.size_bytes)
        ]
        super().__init__(requests, task.messages)

    def exchange(self) -> Exchange:
        return self

    def answered(self, connection: Connection, body: bytes) -> None:
        assert isinstance(connection.state, bytes)
        answers.check_sent(body, connection.state)
        self.ask(connection)


class SendingBatches(PreparedStream):
    """SendMessageBatch, signed before the clock started."""

    def __init__(self, task: Send) -> None:
        signer = Signer(task.endpoint, "SendMessageBatch")
        known = contents(task.size_bytes)
        requests: list[tuple[bytes, object]] = []
        for first in range(len(known)):
            batch = [known[(first + step) % len(known)] for step in range(task.batch_messages)]
            body = bodies.send_batch_body(task.endpoint.queue_url, batch)
            requests.append((signer.request(body), batch))
        super().__init__(requests, task.messages // task.batch_messages)

    def exchange(self) -> Exchange:
        return self

    def answered(self, connection: Connection, body: bytes) -> None:
        assert isinstance(connection.state, list)
        answers.check_sent_batch(body, connection.state)
        self.ask(connection)


class Receiving(Stream):
    """ReceiveMessage and DeleteMessageBatch by turns; `state` is how many a delete under way deletes, 0 = none."""

    def __init__(self, task: ReceiveAndDelete) -> None:
        super().__init__()
        self._queue_url = task.endpoint.queue_url
        self._receive = Signer(task.endpoint, "ReceiveMessage").request(
            bodies.receive_body(self._queue_url, RECEIVE_MESSAGES)
        )
        self._deletes = Signer(task.endpoint, "DeleteMessageBatch")
        self._checksums = {content.text: content.md5 for content in contents(task.size_bytes)}
        self._wanted = task.messages
        self.received = 0

    def exchange(self) -> Exchange:
        return self

    def ask(self, connection: Connection) -> None:
        if self.received >= self._wanted:
            self.end(connection)
            return
        connection.state = 0
        connection.write(self._receive)

    def answered(self, connection: Connection, body: bytes) -> None:
        deleted = connection.state
        assert isinstance(deleted, int)
        if deleted:
            answers.check_deleted(body, deleted)
            self.ask(connection)
            return
        handles = answers.received_handles(body, self._checksums)
        if not handles:
            self.ask(connection)
            return
        self.received += len(handles)
        connection.state = len(handles)
        connection.write(self._deletes.request(bodies.delete_batch_body(self._queue_url, handles)))
