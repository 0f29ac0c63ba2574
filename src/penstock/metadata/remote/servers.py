"""Asks the metadata servers; `metadata.organisation.server_search` decides which and for how long."""

from __future__ import annotations

import asyncio
from typing import NoReturn, assert_never

from penstock.metadata.organisation.organisation import Organisation, agreed
from penstock.metadata.organisation.server_search import (
    SHORTEST_SHARE_SECONDS,
    End,
    Rest,
    ServerSearch,
    Try,
)
from penstock.metadata.organisation.shard_map import shard_of
from penstock.metadata.remote.connection import Dial, Reply, dial_plainly
from penstock.metadata.remote.connections import Connections, closed
from penstock.metadata.remote.failures import (
    PerhapsDoneError,
    ServerFailure,
    StoreFailedError,
    failure_of,
)
from penstock.metadata.remote.settings import RemoteSettings
from penstock.metadata.store.interface import StoreRefusedError, StoreUnavailableError
from penstock.model.batch import Buffer
from penstock.streams.waiting import came
from penstock.wire.metadata_messages import Found, Request

REQUESTS_AT_ONCE = 512


class Servers:
    """All known servers, and which one is asked for what."""

    def __init__(self, settings: RemoteSettings, name: str, dial: Dial = dial_plainly) -> None:
        self.timeout_seconds = settings.timeout_seconds
        self.connections = Connections(settings.secret, name, dial=dial)
        self._organisation = agreed({})
        self._orders: dict[int | None, list[str]] = {}
        """By shard: whom to ask in which order; worked out once for every set of servers."""
        self._given = settings.addresses
        self._name = name
        self._room = asyncio.Semaphore(REQUESTS_AT_ONCE)

    @property
    def organisation(self) -> Organisation:
        """The last known servers."""
        return self._organisation

    @organisation.setter
    def organisation(self, organisation: Organisation) -> None:
        self._organisation = organisation
        self._orders.clear()

    def addresses(self, key: str | None) -> list[str]:
        """Those to ask for a key, or for anything, in order; the ones that were given are asked in any case."""
        shard = shard_of(key) if key is not None and self._organisation.sharded else None
        order = self._orders.get(shard)
        if order is None:
            servers = self._organisation.servers
            known = [servers[name].address for name in self._organisation.to_ask(self._name, key)]
            order = self._orders[shard] = list(dict.fromkeys([*known, *self._given]))
        return self.connections.trusted_first(order)

    async def ask(self, key: str | None, request: Request, *, first: bool = False) -> Reply:
        """Sends a request that may be repeated, until a server answers.

        Raises the store's errors, and `StoreUnavailableError` when no server answers in time. `first`: no server was asked
        before; if all refuse this process they always will, and `StoreRefusedError` reports that at once.
        """
        search = ServerSearch(
            self.timeout_seconds, asyncio.get_running_loop().time(), again=True, first=first
        )
        address, reply = await self._searched(search, key, request)
        self._note_behind(address, reply)
        return reply

    async def write(
        self, key: str, request: Request, body: Buffer = b"", seconds: float | None = None
    ) -> Reply:
        """Asks for a change, of the next server only if the last certainly did nothing.

        Raises what the store raises, and `PerhapsDoneError`.
        """
        seconds = self.timeout_seconds if seconds is None else seconds
        search = ServerSearch(seconds, asyncio.get_running_loop().time(), again=False)
        return (await self._searched(search, key, request, body))[1]

    async def _searched(
        self, search: ServerSearch, key: str | None, request: Request, body: Buffer = b""
    ) -> tuple[str, Reply]:
        """The server that answers, and its answer."""
        loop = asyncio.get_running_loop()
        failures: dict[str, ServerFailure] = {}
        async with self._room:
            while True:
                match search.next(loop.time(), lambda: self.addresses(key)):
                    case Try(address, seconds):
                        try:
                            return address, await self.connections.ask(address, request, body, seconds)
                        except ServerFailure as error:
                            failures[address] = error
                            search.failed(address, failure_of(error))
                            if not search.again and isinstance(error, StoreFailedError):
                                self.connections.suspect(address)
                    case Rest(seconds):
                        await self.pause(seconds)
                    case End() as end:
                        self._raise(end, failures)

    def _raise(self, end: End, failures: dict[str, ServerFailure]) -> NoReturn:
        """Raises an error with each server's answer, or the most important one."""
        said = "; ".join(f"{address}: {error}" for address, error in failures.items())
        match end:
            case End.OUT_OF_TIME:
                raise self.unavailable(failures)
            case End.REFUSED:
                raise StoreRefusedError(f"the metadata servers refuse this process ({said})")
            case End.NO_STORE:
                error = next(one for one in reversed(failures.values()) if isinstance(one, StoreFailedError))
                raise StoreUnavailableError(str(error)) from error
            case End.UNCERTAIN:
                address, unknown = next(
                    one for one in reversed(failures.items()) if isinstance(one[1], PerhapsDoneError)
                )
                raise PerhapsDoneError(f"{address}: {unknown}") from unknown
            case _:
                assert_never(end)

    async def ask_one(self, address: str, request: Request) -> Reply | None:
        """Asks one server and no other; None if it does not answer soon."""
        try:
            return await self.connections.ask(address, request, b"", SHORTEST_SHARE_SECONDS)
        except ServerFailure:
            return None

    async def pause(self, seconds: float) -> None:
        """Waits; raises `StoreUnavailableError` at once if the store is closed meanwhile."""
        if await came(self.connections.closed, seconds):
            raise closed()

    def unavailable(self, failures: dict[str, ServerFailure]) -> StoreUnavailableError:
        """An error with each server's answer."""
        said = "; ".join(f"{address}: {error}" for address, error in failures.items())
        return StoreUnavailableError(
            f"no metadata server answered within {self.timeout_seconds:g} s, try again ({said})"
        )

    def _note_behind(self, address: str, reply: Reply) -> None:
        """A server that receives no changes from the store may be the only such one: the others are asked next."""
        if isinstance(reply.answer, Found) and reply.answer.behind and not self._organisation.sharded:
            self.connections.suspect(address)
