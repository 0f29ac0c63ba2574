"""Asks the members of an etcd: the next one when one fails, within a bounded time, as the configured user.

Every request demands that the member has a leader, so that a disconnected member reports this at once instead of blocking.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from ssl import SSLContext, SSLError, TLSVersion, create_default_context
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
from penstock.metadata.store.etcd_search import CONNECT_SECONDS, MemberOrder, Question
from penstock.metadata.store.etcd_settings import Endpoint, EtcdSettings, TlsFiles
from penstock.metadata.store.interface import StoreRefusedError, StoreUnavailableError
from penstock.streams.waiting import came

QUESTIONS_AT_ONCE = 64

Answer = TypeVar("Answer")


class EtcdClient:
    """Connections to all members, kept for the next request."""

    def __init__(self, settings: EtcdSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout_seconds = settings.timeout_seconds
        self.closed = asyncio.Event()
        self._settings = settings
        self._tls: SSLContext | None = _tls_context(settings.tls) if settings.tls is not None else None
        self._clock = clock
        self.order = MemberOrder(settings.endpoints)
        self._idle: dict[Endpoint, list[HttpConnection]] = {one: [] for one in settings.endpoints}
        self._open: WeakSet[HttpConnection] = WeakSet()
        self._token: str | None = None
        self._proving = asyncio.Lock()
        self._room = asyncio.Semaphore(QUESTIONS_AT_ONCE)

    async def ask(self, path: str, request: dict[str, Any], kind: type[Answer], again: bool) -> Answer:
        """Asks until a member answers; `again` says that asking twice does no harm.

        Raises `RefusedError`, `PerhapsDoneError` (only without `again`) or `StoreUnavailableError`.
        """
        question = Question(self.order, self.timeout_seconds, self._clock(), again=again)
        body = encode(request)
        while True:
            seconds = question.seconds(self._clock())
            if self.closed.is_set():
                refuse_closed()
            member = self.order.first
            try:
                return await self._ask_one(member, path, body, kind, seconds)
            except TokenRefusedError as error:
                pause = question.token_refused(member, error)
            except RefusedError as error:
                raise self._explained(member, error) from error
            except (NotDoneError, PerhapsDoneError) as error:
                self.demote(member)
                if self.closed.is_set():
                    refuse_closed()
                pause = question.failed(member, error, self._clock())
            if pause:
                await self.pause(pause)

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

    def demote(self, member: Endpoint) -> None:
        """It did not answer, so that the others are asked first, and what it was connected by is let go."""
        self.order.demote(member)
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


def _tls_context(files: TlsFiles) -> SSLContext:
    """Checks the member's certificate and its name, and shows ours if there is one."""
    try:
        context = create_default_context(cafile=files.ca)
        context.minimum_version = TLSVersion.TLSv1_2
        if files.certificate is not None:
            context.load_cert_chain(files.certificate, files.key)
    except (OSError, SSLError) as error:
        names = ", ".join(str(one) for one in (files.ca, files.certificate, files.key) if one is not None)
        raise StoreRefusedError(f"cannot use the TLS files of etcd ({names}): {error}") from error
    return context
