"""Loads that mostly wait: connections at rest, and long polls that nothing arrives for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from benchmarks.sqs import answers, bodies
from benchmarks.sqs.bodies import contents
from benchmarks.sqs.connection import Connection
from benchmarks.sqs.signing import Signer
from benchmarks.sqs.streams import connect
from benchmarks.sqs.tasks import Endpoint, HoldConnections, HoldPolls

WAIT_SECONDS = 20
"""The longest that SQS lets a receiver wait."""
_BATCH_MESSAGES = 10
_TIMEOUT_SECONDS = 60.0

Turn = Callable[[], Awaitable[None]]
"""Says that everything stands, and waits until it is to go on."""


class _Round:
    """One request on every connection, and the wait for all the answers."""

    def __init__(self, check: Callable[[bytes], None]) -> None:
        self._check = check
        self._missing = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self, connection: Connection) -> None:
        """Nothing is asked before all stand."""

    def ask(self, connections: list[Connection], request: bytes) -> None:
        """Asks on all of them."""
        self._missing = len(connections)
        self._done = asyncio.get_running_loop().create_future()
        for connection in connections:
            connection.write(request)

    async def answers(self) -> None:
        """Waits for the last of the answers; raises what went wrong."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await self._done

    def answered(self, connection: Connection, body: bytes) -> None:
        self._check(body)
        self._missing -= 1
        if not self._missing and not self._done.done():
            self._done.set_result(None)

    def failed(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)


async def hold_connections(task: HoldConnections, turn: Turn) -> int:
    """How many connections were opened, used, left at rest, and used again."""
    request = _attributes_request(task.endpoint)
    everyone = _Round(_check_attributes)
    connections = await connect(task.endpoint, everyone, task.connections)
    try:
        for is_last in (False, True):
            # A hundred at a time: what is looked at is how they rest, not how they storm.
            for first in range(0, len(connections), 100):
                everyone.ask(connections[first : first + 100], request)
                await everyone.answers()
            if not is_last:
                await turn()
    finally:
        for connection in connections:
            connection.close()
    return len(connections)


async def hold_polls(task: HoldPolls, turn: Turn) -> tuple[int, float]:
    """How many long polls waited and got one message each, and the seconds from the first send to the last of them."""
    endpoint = task.endpoint
    checksums = {content.text: content.md5 for content in contents(task.size_bytes)}

    def check(body: bytes) -> None:
        if len(answers.received_handles(body, checksums)) != 1:
            raise answers.WrongAnswer(f"a long poll did not get one message: {answers.shown(body)}")

    polls, others = _Round(check), _Round(_check_attributes)
    connections = await connect(endpoint, polls, task.polls)
    beside = await connect(endpoint, others, 1)
    senders: list[Connection] = []
    try:
        receive = Signer(endpoint, "ReceiveMessage").request(
            bodies.receive_body(endpoint.queue_url, 1, WAIT_SECONDS)
        )
        polls.ask(connections, receive)
        # The server takes requests in the order they arrive, so an answer to a later one says that all polls wait.
        others.ask(beside, _attributes_request(endpoint))
        await others.answers()
        await turn()
        batch = list(contents(task.size_bytes)[:_BATCH_MESSAGES])
        send = Signer(endpoint, "SendMessageBatch").request(bodies.send_batch_body(endpoint.queue_url, batch))
        sends = _Round(lambda body: answers.check_sent_batch(body, batch))
        senders = await connect(endpoint, sends, -(-task.polls // _BATCH_MESSAGES))
        started = time.monotonic()
        sends.ask(senders, send)
        await sends.answers()
        await polls.answers()
        return len(connections), time.monotonic() - started
    finally:
        for connection in (*connections, *beside, *senders):
            connection.close()


def _attributes_request(endpoint: Endpoint) -> bytes:
    return Signer(endpoint, "GetQueueAttributes").request(bodies.attributes_body(endpoint.queue_url))


def _check_attributes(body: bytes) -> None:
    if b'"QueueArn"' not in body:
        raise answers.WrongAnswer(f"GetQueueAttributes was answered {answers.shown(body)}")
