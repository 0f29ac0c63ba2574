"""What the tests of the server share: a raw client that says exactly what it is told, and a way to run a test."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import uvloop

from penstock.config import Address, ServeConfig
from penstock.model.batch import encode_parts
from penstock.model.limits import MEBIBYTE
from penstock.model.settings import QueueSettings
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.messages import (
    PROTOCOL_VERSION,
    Answer,
    CreateQueue,
    Hello,
    QueueDescription,
    Request,
    Send,
    Welcome,
    decode_answer,
    encode_message,
)

TEST_SECONDS = 120
"""However busy the machine is."""


def async_test(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs a coroutine function as a test, on the event loop that the server uses."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        async def within_time() -> None:
            async with asyncio.timeout(TEST_SECONDS):
                await test(*arguments, **fixtures)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(within_time())

    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]  # for pytest's fixtures
    return run


async def until(condition: Callable[[], bool]) -> None:
    """Returns when something inside the server has come about that nobody is told of."""
    while not condition():  # noqa: ASYNC110  # it is asked again until it is so
        await asyncio.sleep(0)


def small_config(**changes: Any) -> ServeConfig:
    """A configuration for tests: any free port, small files."""
    values: dict[str, Any] = {
        "listen": Address("127.0.0.1", 0),
        "sqs_listen": Address("127.0.0.1", 0),
        "monitoring_listen": None,
        "journal_file_bytes": 32 * MEBIBYTE,
        "checkpoint_bytes": 32 * MEBIBYTE,
        **changes,
    }
    return ServeConfig(**values)


class RawClient:
    """A connection with nothing between the test and the bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._frames = FrameReader()
        self._arrived: list[Frame] = []
        self._next_request = 1

    @classmethod
    async def connect(cls, port: int, *, hello: bool = True, access_key: str = "") -> RawClient:
        """Connects, and greets unless told not to; as `LINK_KEY`, nothing of what it does is recorded."""
        client = cls(*await asyncio.open_connection("127.0.0.1", port))
        if hello:
            assert isinstance(await client.ask(Hello([PROTOCOL_VERSION], "test", access_key)), Welcome)
        return client

    def write(self, request: Request, body: bytes = b"", *, request_id: int | None = None) -> int:
        """Sends a request without waiting for its answer; returns its id."""
        if request_id is None:
            request_id = self._next_request
            self._next_request += 1
        self.writer.writelines(encode_frame(request_id, encode_message(request), [body] if body else []))
        return request_id

    async def ask(self, request: Request, body: bytes = b"") -> Answer:
        """Sends a request and returns its answer."""
        request_id = self.write(request, body)
        frame = await self.frame()
        assert frame is not None, "the server closed the connection"
        assert frame.request_id == request_id
        return decode_answer(frame.head)

    async def frame(self) -> Frame | None:
        """The next frame; None at the end of the connection."""
        while not self._arrived:
            data = await self._reader.read(1 << 20)
            if not data:
                return None
            self._arrived += self._frames.feed(data)
        return self._arrived.pop(0)

    async def answer(self) -> Answer | None:
        """The next answer, whatever it answers; None at the end of the connection."""
        frame = await self.frame()
        return None if frame is None else decode_answer(frame.head)

    async def is_dropped(self) -> bool:
        """Whether the connection ends without another answer."""
        try:
            return await self.frame() is None
        except ConnectionError:
            return True

    async def create_queue(self, name: str, settings: QueueSettings | None = None) -> int:
        """Creates a queue; returns its id."""
        described = await self.ask(CreateQueue(name, settings or QueueSettings()))
        assert isinstance(described, QueueDescription)
        return described.queue_id

    async def send(self, queue_id: int, bodies: Sequence[bytes]) -> Answer:
        """Sends one batch."""
        return await self.ask(Send(queue_id), encode_parts(bodies))

    def close(self) -> None:
        """Hangs up."""
        self.writer.close()
