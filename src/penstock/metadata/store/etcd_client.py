"""Asks the members of an etcd: the next one when one fails, within a bounded time, as the configured user.

Every request demands that the member has a leader, so that a disconnected member reports this at once instead of blocking.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from ssl import SSLContext, SSLError
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet

import msgspec

from penstock.metadata.store.etcd_errors import (
    UNAUTHENTICATED,
    DistrustError,
    EtcdError,
    NotDoneError,
    PerhapsDoneError,
    RefusedError,
    TokenRefusedError,
    meaning,
)
from penstock.metadata.store.etcd_http import BadHttpError, HttpConnection
from penstock.metadata.store.etcd_messages import Problem, StatusAnswer, TokenAnswer, decode, encode
from penstock.metadata.store.etcd_settings import Endpoint, EtcdSettings
from penstock.metadata.store.etcd_tls import client_context
from penstock.metadata.store.interface import StoreRefusedError, StoreUnavailableError
from penstock.streams.waiting import came

QUESTIONS_AT_ONCE = 64
CONNECT_SECONDS = 1.0
PAUSE_SECONDS = 0.05
"""Between two rounds through all members, none of which could answer."""

Answer = TypeVar("Answer")


class EtcdClient:
    """Connections to all members, kept for the next request."""

    def __init__(self, settings: EtcdSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout_seconds = settings.timeout_seconds
        self.closed = asyncio.Event()
        self._settings = settings
        self._tls: SSLContext | None = client_context(settings.tls) if settings.tls is not None else None
        self._clock = clock
        self._order = list(settings.endpoints)
        self._idle: dict[Endpoint, list[HttpConnection]] = {one: [] for one in settings.endpoints}
        self._open: WeakSet[HttpConnection] = WeakSet()
        self._token: str | None = None
        self._proving = asyncio.Lock()
        self._room = asyncio.Semaphore(QUESTIONS_AT_ONCE)

    @property
    def members(self) -> list[Endpoint]:
        """All members, those who answered last time first."""
        return list(self._order)

    async def ask(self, path: str, request: dict[str, Any], kind: type[Answer], again: bool) -> Answer:
        """Asks until a member answers; `again` says that asking twice does no harm.

        Raises `RefusedError`, `PerhapsDoneError` (only without `again`) or `StoreUnavailableError`.
        """
        deadline = self._clock() + self.timeout_seconds
        body = encode(request)
        failures: dict[Endpoint, EtcdError] = {}
        tokens = 0
        while (left := deadline - self._clock()) > 0:
            if self.closed.is_set():
                refuse_closed()
            member = self._order[0]
            # A question that may be asked again leaves time to ask the others too.
            share = max(self.timeout_seconds / len(self._order), CONNECT_SECONDS) if again else left
            try:
                return await self._ask_one(member, path, body, kind, min(share, left))
            except TokenRefusedError as error:
                tokens += 1
                if tokens > len(self._order) + 1:
                    raise RefusedError(
                        f"etcd at {member} refuses its own token: {error}", UNAUTHENTICATED
                    ) from error
                if tokens > 1:
                    await self.pause(PAUSE_SECONDS)  # a member that is behind does not know a new token yet
            except RefusedError as error:
                raise self._explained(member, error) from error
            except (NotDoneError, PerhapsDoneError) as error:
                # An attempt that was cut short by the end of the time says less than the one before.
                if member not in failures or not isinstance(error.__cause__, TimeoutError):
                    failures[member] = error
                self.demote(member)
                if self.closed.is_set():
                    refuse_closed()
                if isinstance(error, PerhapsDoneError) and not again:
                    raise PerhapsDoneError(f"{member}: {error}") from error
                if len(failures) == len(self._idle):
                    self._all_distrusted(failures)
                    await self.pause(min(PAUSE_SECONDS, max(deadline - self._clock(), 0)))
        raise self.unavailable(failures)

    async def stream(self, member: Endpoint, path: str, request: dict[str, Any]) -> HttpConnection:
        """A connection over which one member answers line by line; the caller closes it and bounds the time."""
        headers = await self._headers(member)
        connection = await self._connect(member)
        try:
            status = await connection.begin(path, headers, encode(request))
            if status != 200:
                line = await connection.next_line()
                raise self._failed(status, line or b"")
        except (OSError, BadHttpError) as error:
            connection.close()
            raise PerhapsDoneError(_said(error)) from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def check(self, member: Endpoint) -> None:
        """Raises `EtcdError` if the member does not answer soon or has no leader."""
        try:
            status = await self._ask_one(
                member, "/v3/maintenance/status", b"{}", StatusAnswer, CONNECT_SECONDS
            )
        except (RefusedError, TokenRefusedError):
            return  # it answers, and it would have reported a missing leader
        if not status.leader:
            raise NotDoneError("it has no leader")

    def _all_distrusted(self, failures: dict[Endpoint, EtcdError]) -> None:
        """Asking again would find the same certificates."""
        if all(isinstance(error, DistrustError) for error in failures.values()):
            said = "; ".join(f"{member}: {error}" for member, error in failures.items())
            raise StoreRefusedError(f"no member of etcd can be trusted ({said})")

    def demote(self, member: Endpoint) -> None:
        """It did not answer: the others are asked first, and its connection is closed."""
        if self._order[0] == member:
            self._order.append(self._order.pop(0))
        for connection in self._idle[member]:
            connection.close()
        self._idle[member].clear()

    def forget_token(self) -> None:
        """The client must authenticate again before the next request."""
        self._token = None

    async def pause(self, seconds: float) -> None:
        """Waits; raises `StoreUnavailableError` at once if the store is closed meanwhile."""
        if await came(self.closed, seconds):
            refuse_closed()

    def close(self) -> None:
        """Closes all connections; waiting requests fail."""
        self.closed.set()
        for idle in self._idle.values():
            idle.clear()
        for connection in list(self._open):
            connection.close()

    def unavailable(self, failures: dict[Endpoint, EtcdError]) -> StoreUnavailableError:
        """An error with each member's answer."""
        said = "; ".join(f"{member}: {error}" for member, error in failures.items())
        return StoreUnavailableError(
            f"etcd did not answer within {self.timeout_seconds:g} s, try again ({said})"
        )

    # -- one member ------------------------------------------------------------------------------------------

    async def _ask_one(
        self, member: Endpoint, path: str, body: bytes, kind: type[Answer], seconds: float
    ) -> Answer:
        sent = False
        try:
            async with asyncio.timeout(seconds), self._room:
                headers = await self._headers(member)
                connection = await self._connect(member)
                sent = True
                return await self._exchange(member, connection, path, headers, body, kind)
        except TimeoutError as error:
            if sent:
                raise PerhapsDoneError(f"no answer within {seconds:.3g} s") from error
            raise NotDoneError(f"could not be asked within {seconds:.3g} s") from error

    async def _exchange(
        self,
        member: Endpoint,
        connection: HttpConnection,
        path: str,
        headers: dict[str, str],
        body: bytes,
        kind: type[Answer],
    ) -> Answer:
        kept = False
        try:
            status, answer = await connection.ask(path, headers, body)
            kept = connection.usable and not self.closed.is_set()
        except (OSError, BadHttpError) as error:
            raise PerhapsDoneError(_said(error)) from error
        finally:
            if kept:
                self._idle[member].append(connection)
            else:
                connection.close()
        if status != 200:
            raise self._failed(status, answer)
        try:
            return decode(answer, kind)
        except msgspec.MsgspecError as error:
            raise PerhapsDoneError(f"the server at this address is not etcd ({error})") from error

    async def _connect(self, member: Endpoint) -> HttpConnection:
        idle = self._idle[member]
        while idle:
            connection = idle.pop()
            if connection.usable:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await HttpConnection.open(member, self._tls)
        except TimeoutError as error:
            raise NotDoneError(f"no connection within {CONNECT_SECONDS:g} s") from error
        except SSLError as error:
            raise DistrustError(_said(error)) from error
        except OSError as error:
            raise NotDoneError(_said(error)) from error
        if self.closed.is_set():
            connection.close()
            refuse_closed()
        self._open.add(connection)
        return connection

    async def _headers(self, member: Endpoint) -> dict[str, str]:
        headers = {"Grpc-Metadata-hasleader": "true"}
        if self._settings.user is None:
            return headers
        async with self._proving:
            if self._token is None:
                self._token = await self._prove(member, self._settings.user, self._settings.password or "")
        return {**headers, "Authorization": self._token}

    async def _prove(self, member: Endpoint, user: str, password: str) -> str:
        body = encode({"name": user, "password": password})
        connection = await self._connect(member)
        try:
            answer = await self._exchange(member, connection, "/v3/auth/authenticate", {}, body, TokenAnswer)
        except PerhapsDoneError as error:
            raise NotDoneError(str(error)) from error  # a token more or less does no harm
        return answer.token

    def _failed(self, status: int, answer: bytes) -> EtcdError:
        error = meaning(status, Problem.read(answer))
        if isinstance(error, TokenRefusedError):
            if self._settings.user is None:
                return RefusedError(f"{error}; this etcd asks for a user and a password", UNAUTHENTICATED)
            self.forget_token()
        return error

    def _explained(self, member: Endpoint, error: RefusedError) -> RefusedError:
        return type(error)(f"etcd at {member} refuses: {error}", error.code)


def refuse_closed() -> NoReturn:
    """The error after the end."""
    raise StoreUnavailableError("the metadata store is closed")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
