"""Whatever bytes arrive in whatever pieces: an answer or a closed connection, and never an exception."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.runtime.http.answers import Refusal
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.request_reader import RequestReader
from tests.runtime.http.harness import LOOPS, echo, run_on, serving

FRAGMENTS = (
    *(b"GET / HTTP/1.1\r\n", b"POST /a?b HTTP/1.1\r\n", b"HEAD * HTTP/1.0\r\n", b"GET / HTTP/9.9\r\n"),
    *(
        b"Host: h\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length: 99999999999\r\n",
        b"Content-Length: -1\r\n",
    ),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n"),
    *(b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"X: y\r\n", b" folded\r\n", b"\r\n", b"\r\n\r\n"),
    *(b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"\x00", b"\n", b"x" * 700, b"\xff"),
)
bytes_of_clients = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=20)), min_size=1, max_size=24
)
LIMITS: dict[str, Any] = {
    "head_bytes": 1000,
    "target_bytes": 200,
    "headers": 8,
    "body_bytes": 1000,
    "pipelined": 2,
}


@pytest.mark.parametrize("loop_name", list(LOOPS))
@settings(max_examples=150)
@given(pieces=bytes_of_clients)
def test_a_client_that_says_anything_is_answered_or_left(loop_name: str, pieces: list[bytes]) -> None:
    async def talk() -> None:
        async with serving(echo, **LIMITS) as served:
            client = await served.client()
            for piece in pieces:
                client.send(piece)
                await asyncio.sleep(0)
            client.half_close()
            told = await client.ended()
            statuses = re.findall(rb"HTTP/1\.1 (\d+) ", told)
            assert not any(status.startswith(b"5") for status in statuses)
            assert told == b"" or told.startswith(b"HTTP/1.1 ")

    run_on(loop_name, talk)


@settings(max_examples=400)
@given(pieces=bytes_of_clients)
def test_a_reader_says_the_same_however_the_bytes_are_cut(pieces: list[bytes]) -> None:
    whole = read([b"".join(pieces)])
    assert read(pieces) == whole
    assert read([bytes([byte]) for byte in b"".join(pieces)]) == whole


def read(pieces: list[bytes]) -> tuple[list[object], bool]:
    """The requests in these bytes, and whether the rest was refused: of two reasons either may be told."""
    reader = RequestReader(HttpLimits(**LIMITS))
    refused = False
    try:
        for piece in pieces:
            reader.feed(piece)
    except Refusal:
        refused = True
    return [exchange.request for exchange in reader.arrived], refused
