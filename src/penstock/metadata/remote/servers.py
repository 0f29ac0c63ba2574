"""Asks the metadata servers: the right one first, the next one when one is gone, within a bounded time."""

from __future__ import annotations

import asyncio

from penstock.metadata.organisation.organisation import Organisation, agreed
from penstock.metadata.organisation.shard_map import shard_of
from penstock.metadata.remote.connection import Dial, Reply, dial_plainly
from penstock.metadata.remote.connections import Connections, closed
from penstock.metadata.remote.failures import (
    NotDoneError,
    PerhapsDoneError,
    ServerFailure,
    StoreFailedError,
    StrangerError,
)
from penstock.metadata.remote.settings import RemoteSettings
from penstock.metadata.store.interface import StoreRefusedError, StoreUnavailableError
from penstock.model.batch import Buffer
from penstock.streams.waiting import came
from penstock.wire.metadata_messages import Found, Request

SHORTEST_SHARE_SECONDS = 1.0
PAUSE_SECONDS = 0.05
"""Between two rounds through all servers, none of which could answer."""
REQUESTS_AT_ONCE = 512


class Servers:
    """All servers that are known, and who is asked for what."""

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
        """The servers as they were heard of last."""
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
        """Asks something that does no harm when it is asked twice, until a server answers.

        Raises what the store raises, and `StoreUnavailableError` when no server answers in time. `first`: nobody was
        asked before; where all refuse this process they always will, and `StoreRefusedError` says so at once.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_seconds
        failures: dict[str, ServerFailure] = {}
        async with self._room:
            while True:
                addresses = self.addresses(key)
                share = max(self.timeout_seconds / len(addresses), SHORTEST_SHARE_SECONDS)
                for address in addresses:
                    left = deadline - loop.time()
                    if left <= 0:
                        raise self.unavailable(failures)
                    try:
                        reply = await self.connections.ask(address, request, b"", min(share, left))
                    except ServerFailure as error:
                        failures[address] = error
                    else:
                        self._note_behind(address, reply)
                        return reply
                if first and all(isinstance(failures.get(one), StrangerError) for one in addresses):
                    said = "; ".join(f"{one}: {failures[one]}" for one in addresses)
                    raise StoreRefusedError(f"the metadata servers refuse this process ({said})")
                self._all_without_store([failures.get(one) for one in addresses])
                await self.pause(min(PAUSE_SECONDS, max(deadline - loop.time(), 0)))

    async def write(
        self, key: str, request: Request, body: Buffer = b"", seconds: float | None = None
    ) -> Reply:
        """Asks for a change, of the next server only if the last certainly did nothing.

        Raises what the store raises, and `PerhapsDoneError`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self.timeout_seconds if seconds is None else seconds)
        failures: dict[str, ServerFailure] = {}
        async with self._room:
            while True:
                for address in self.addresses(key):
                    left = deadline - loop.time()
                    if left <= 0:
                        raise self.unavailable(failures)
                    try:
                        return await self.connections.ask(address, request, body, left)
                    except NotDoneError as error:
                        failures[address] = error
                    except PerhapsDoneError as error:
                        raise PerhapsDoneError(f"{address}: {error}") from error
                    except StoreFailedError as error:
                        self.connections.suspect(address)
                        raise StoreUnavailableError(str(error)) from error
                await self.pause(min(PAUSE_SECONDS, max(deadline - loop.time(), 0)))

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
        """Says what each server said."""
        said = "; ".join(f"{address}: {error}" for address, error in failures.items())
        return StoreUnavailableError(
            f"no metadata server answered within {self.timeout_seconds:g} s, try again ({said})"
        )

    def _note_behind(self, address: str, reply: Reply) -> None:
        """A server that does not hear from the store may be the only one: others have the same and are asked next."""
        if isinstance(reply.answer, Found) and reply.answer.behind and not self._organisation.sharded:
            self.connections.suspect(address)

    def _all_without_store(self, failures: list[ServerFailure | None]) -> None:
        """All of them are there and none has its store: waiting longer is the caller's to decide."""
        if all(isinstance(one, StoreFailedError) for one in failures):
            raise StoreUnavailableError(str(failures[0]))
