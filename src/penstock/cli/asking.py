"""Asks a server for a command: connects, does the work, and fails at once when no server answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.cli.exits import UNREACHABLE, CommandError
from penstock.client.client import Client, connect
from penstock.client.connection.address import parse_address

Result = TypeVar("Result")

CONNECT_SECONDS = 5.0
LOST_SECONDS = 15.0
"""For how long a connection that was lost on the way is sought again."""


def ask(url: str, work: Callable[[Client], Awaitable[Result]]) -> Result:
    """Runs `work` with a connected client; raises what it raises."""
    return asyncio.run(_ask(url, work))


async def _ask(url: str, work: Callable[[Client], Awaitable[Result]]) -> Result:
    connecting = connect(url, timeout=LOST_SECONDS, name="penstock command line")
    if not connecting.address.secure:
        await _knock(url)
        async with connecting as client:
            return await work(client)
    # A connection without a handshake is a warning in the log of a server with TLS.
    client = await connecting.connect(CONNECT_SECONDS, once=True)
    try:
        return await work(client)
    finally:
        await client.close()


async def _knock(url: str) -> None:
    """The client would continue to try; a person at a prompt wants to know at once."""
    address = parse_address(url)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(address.host, address.port)
        writer.close()
    except TimeoutError:
        raise CommandError(
            f"no answer from {address} within {CONNECT_SECONDS:g} s; is `penstock serve` running there?",
            UNREACHABLE,
        ) from None
    except ConnectionRefusedError:
        raise CommandError(
            f"nothing listens at {address}; is `penstock serve` running there? "
            "Name another server with --url or PENSTOCK_URL.",
            UNREACHABLE,
        ) from None
    except OSError as error:
        raise CommandError(
            f"cannot reach {address}: {error.strerror or error}. Name another server with --url or PENSTOCK_URL.",
            UNREACHABLE,
        ) from None
