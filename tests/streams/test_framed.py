"""How many writes frames come to: a lone one leaves at once, a burst in one piece, also after a lone one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from penstock.streams.framed import FramedConnection
from penstock.wire.frames import LONE_TURNS, Frame
from tests.client.peer import async_test


class Nobody:
    """Owns a connection that nothing arrives on."""

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        raise AssertionError("nothing was sent")

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
        raise AssertionError("nobody hung up")


class Recorded(asyncio.Transport):
    """Keeps what is written, write by write; a socket would not tell."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It has room for everything."""

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.writes.append(b"".join(list_of_data))

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def taken(self) -> list[bytes]:
        """The writes since this was last asked."""
        taken, self.writes = self.writes, []
        return taken


def connection_over(transport: Recorded) -> FramedConnection:
    connection = FramedConnection(Nobody(), asyncio.get_running_loop())
    connection.connection_made(transport)
    return connection


async def turn_over() -> None:
    """Waits for what was to happen when this turn of the event loop ends."""
    ended = asyncio.Event()
    asyncio.get_running_loop().call_soon(ended.set)
    await ended.wait()


async def turn(connection: FramedConnection, *frames: bytes) -> None:
    """Writes frames in one turn of the event loop, which then ends."""
    for frame in frames:
        connection.write([frame])
    await turn_over()


@async_test
async def test_a_lone_frame_is_written_at_once() -> None:
    transport = Recorded()
    connection = connection_over(transport)
    for _ in range(3):
        connection.write([b"head ", b"body"])
        assert transport.taken() == [b"head body"]
        await turn_over()
    assert transport.taken() == []


@async_test
async def test_a_lone_frame_between_bursts_does_not_tear_the_next_one_apart() -> None:
    transport = Recorded()
    connection = connection_over(transport)
    await turn(connection, b"a", b"b", b"c")
    assert transport.taken() == [b"a", b"bc"], "nobody could know that more would come"
    for _ in range(3):
        await turn(connection, b"delete")
        await turn(connection, b"a", b"b", b"c")
        assert transport.taken() == [b"delete", b"abc"]


@async_test
async def test_frames_that_stay_alone_are_written_at_once_again() -> None:
    transport = Recorded()
    connection = connection_over(transport)
    await turn(connection, b"a", b"b")
    transport.taken()
    for _ in range(LONE_TURNS):
        connection.write([b"one"])
        assert transport.taken() == []
        await turn_over()
        assert transport.taken() == [b"one"]
    connection.write([b"one"])
    assert transport.taken() == [b"one"]
    await turn_over()
