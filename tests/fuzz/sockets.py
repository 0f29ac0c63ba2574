"""Cases over real connections to a real server process: every one is answered in time, or cut off where it may be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from tests.fuzz.campaign import Tally
from tests.fuzz.cases import Case, Cases
from tests.fuzz.verdict import Fault, check_answer

CONNECTIONS = 16
ANSWER_SECONDS = 45.0
"""A mutation may ask for a long poll of 20 s, and what else arrives meanwhile is answered too."""
SILENCE_SECONDS = 0.3
"""After so long without an answer bytes that may be no whole request are followed by the end of the stream."""
_READ_BYTES = 1 << 20


class _Closed(Exception):
    """The server closed the connection."""


class _Channel:
    """One connection, opened again whenever it was closed."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, case: Case) -> int:
        """The status of the answer; 0 for one that was cut off. Raises a fault."""
        reader, writer = await self._open()
        try:
            writer.write(case.wire())
            if case.whole:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._answer(reader, case)
            return await self._mutated(reader, writer, case)
        except Fault:
            await self.close()
            raise
        except TimeoutError:
            await self.close()
            raise Fault(f"no answer within {ANSWER_SECONDS:.0f} s") from None
        except (_Closed, ConnectionError) as error:
            await self.close()
            if case.whole:
                raise Fault(f"the connection was closed without an answer: {error}") from None
            return 0

    async def _mutated(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, case: Case) -> int:
        """Bytes that may be half a request, or two: the first answer counts, then the connection ends."""
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                status = await self._answer(reader, case)
        except TimeoutError:
            status = 0
        if writer.can_write_eof():
            writer.write_eof()
        async with asyncio.timeout(ANSWER_SECONDS):
            while await reader.read(_READ_BYTES):
                pass
        await self.close()
        return status

    async def _answer(self, reader: asyncio.StreamReader, case: Case) -> int:
        status = 100
        while status == 100:  # leave to send the body is no answer
            status, headers = await _head(reader)
        bodiless = case.method == "HEAD" or status in (204, 304)
        body = b"" if bodiless else await _exactly(reader, int(headers["content-length"]))
        check_answer(status, headers, body, bodiless=bodiless)
        self.body = body
        if headers.get("connection") == "close":
            await self.close()
        return status

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        return self._streams

    async def close(self) -> None:
        """Gives the connection up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        raise _Closed(f"after {error.partial[:200]!r}") from None
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status, *_ = first.split(" ")
    if version != "HTTP/1.1":
        raise Fault(f"an answer of {version}")
    pairs = (line.partition(":") for line in lines if line)
    return int(status), {name.lower(): value.strip() for name, _, value in pairs}


async def _exactly(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise Fault(f"{len(error.partial)} of {size} bytes of an answer") from None


async def run_over_sockets(cases: Cases, host: str, port: int, *, requests: int, first: int = 0) -> Tally:
    """Cases against a server, several connections at a time."""
    tally = Tally()
    numbers = iter(range(first, first + requests))

    async def work(numbers: Iterator[int]) -> None:
        channel = _Channel(host, port)
        for number in numbers:
            case = cases.case(number, int(time.time()))
            try:
                status = await channel.exchange(case)
            except Fault as fault:
                tally.fault(number, case, fault)
                continue
            if status == 200:
                cases.known.learn(case.queue_url, channel.body)
            tally.count(case, status)
        await channel.close()

    await asyncio.gather(*(work(numbers) for _ in range(CONNECTIONS)))
    return tally
