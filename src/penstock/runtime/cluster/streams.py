"""Connections between processes of a cluster, from either side: with TLS if there is a certificate, else without.

With TLS a connection without a certificate of the cluster's authority is refused here, with one sentence in the log,
before a protocol reads any of its bytes.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from penstock.runtime.native.bad_connections import BadConnections
from penstock.runtime.native.proxy_headers import take_header
from penstock.wire.handshake import HandshakeError
from penstock.wire.proxy_protocol import ProxyHeader, ProxyHeaderError
from penstock.wire.strangers import STRANGERS_AT_ONCE, Strangers
from penstock.wire.tls_reasons import is_wrong_name, speaks_no_tls

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 5.0
PASSED_ON_AT_ONCE = 4_096
"""So many may be in the middle of showing who they are without TLS, where only what a balancer says is waited for."""
BACKLOG = 1_024

Stream = TypeVar("Stream", bound=asyncio.Protocol)


class Certified(Protocol):
    """Listens with TLS."""

    @property
    def server(self) -> ssl.SSLContext:
        """The context for listening."""
        ...

    @property
    def plain_answer(self) -> bytes:
        """The answer to clients without TLS; empty: none."""
        ...

    def why_refused(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Why a certificate of the authority is refused; None: it is not."""
        ...


class Shown(NamedTuple):
    """Listens without asking for client certificates."""

    server: ssl.SSLContext
    plain_answer: bytes = b""

    def why_refused(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Never refuses, because no certificate was requested."""
        return None


class Trusting(Protocol):
    """Connects with TLS."""

    @property
    def client(self) -> ssl.SSLContext:
        """The context for the next connection."""
        ...

    def name_at(self, host: str) -> str:
        """The name that a server at a host must have, if names are checked."""
        ...


class Listener(Protocol):
    """A listening server."""

    def close(self) -> None:
        """Accepts no more connections."""
        ...


async def dial(
    make: Callable[[], Stream],
    host: str,
    port: int,
    tls: Trusting | None,
) -> Stream:
    """A connection to another process; raises `OSError`, and `HandshakeError` where one does not trust the other."""
    loop = asyncio.get_running_loop()
    if tls is None:
        return (await loop.create_connection(make, host, port))[1]
    try:
        return (
            await loop.create_connection(
                make,
                host,
                port,
                ssl=tls.client,
                server_hostname=tls.name_at(host),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        )[1]
    except ssl.SSLError as error:
        raise HandshakeError(_why(error)) from error


class Balanced(Protocol):
    """Accepts connections of balancers, and gets the clients' addresses."""

    def trusts(self, address: str) -> bool:
        """Whether a header from that address is trusted."""
        ...

    def make(self, header: ProxyHeader) -> asyncio.Protocol:
        """The protocol for a client that a balancer names."""
        ...


async def listen(
    make: Callable[[], asyncio.Protocol],
    listener: socket.socket,
    tls: Certified | None,
    service: str,
    backlog: int = BACKLOG,
    balanced: Balanced | None = None,
    *,
    at_once: int = STRANGERS_AT_ONCE,
    seconds: float = HANDSHAKE_SECONDS,
) -> Listener:
    """Takes connections from a socket that is bound; `service` is what is there, for the log.

    So many may be in the middle of the TLS handshake `at_once`, for so many seconds; the oldest goes for the next.
    """
    if tls is None and balanced is None:
        return await asyncio.get_running_loop().create_server(make, sock=listener, backlog=backlog)
    listener.setblocking(False)
    listener.listen(backlog)
    return _GreetingListener(make, listener, tls, service, balanced, at_once, seconds)


class _GreetingListener:
    """Reads the bytes before the protocol: the balancer's header, and the TLS handshake."""

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        listener: socket.socket,
        tls: Certified | None,
        service: str,
        balanced: Balanced | None,
        at_once: int,
        seconds: float,
    ) -> None:
        self._make = make
        self._listener = listener
        self._tls = tls
        self._service = service
        self._balanced = balanced
        self._seconds = seconds
        self._greetings: Strangers[asyncio.Task[None]] = Strangers(
            at_once if tls is not None else PASSED_ON_AT_ONCE
        )
        self._bad = BadConnections(logger)
        self._accepting = asyncio.create_task(self._accept(), name=f"listener of {service}")
        # Not before it has ended, or the loop would use a file descriptor that is another file by then.
        self._accepting.add_done_callback(lambda _: listener.close())

    def close(self) -> None:
        for task in (self._accepting, *self._greetings):
            task.cancel()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, place = await loop.sock_accept(self._listener)
            except OSError as error:
                self._bad.tell(
                    "files",
                    "cannot accept a connection (%(service)s): %(error)s",
                    service=self._service,
                    error=error,
                )
                await asyncio.sleep(1.0)  # too many files are open; it is tried again
                continue
            task = loop.create_task(self._greet(connection, str(place[0])))
            task.add_done_callback(self._greetings.leave)
            oldest = self._greetings.enter(task)
            if oldest is not None:
                oldest.cancel()
                self._bad.tell(
                    "many",
                    "closed a connection that was not authenticated, to make room for new ones (%(service)s)",
                    service=self._service,
                )
            await asyncio.sleep(0)  # the greeting begins before the next one is taken

    async def _greet(self, connection: socket.socket, host: str) -> None:
        try:
            header = await self._header(connection, host)
            make = self._make
            if header is not None and header.address is not None and self._balanced is not None:
                make, host = partial(self._balanced.make, header), header.address or host
            await self._connect(connection, host, make)
        except ProxyHeaderError as error:
            connection.close()
            self._tell("header", host, str(error))
        except OSError as error:
            connection.close()
            self._tell(_kind(error), host, _why(error))
        except BaseException:
            connection.close()
            raise

    async def _header(self, connection: socket.socket, host: str) -> ProxyHeader | None:
        """The header of a trusted balancer."""
        if self._balanced is None or not self._balanced.trusts(host):
            return None
        return await take_header(connection, HANDSHAKE_SECONDS)

    async def _connect(
        self, connection: socket.socket, host: str, make: Callable[[], asyncio.Protocol]
    ) -> None:
        loop, tls = asyncio.get_running_loop(), self._tls
        if tls is None:
            await loop.connect_accepted_socket(make, connection)
            return
        spare = connection.dup() if tls.plain_answer else None
        try:
            await loop.connect_accepted_socket(
                lambda: _CertificateCheck(partial(self._takes, tls, host, make)),
                connection,
                ssl=tls.server,
                ssl_handshake_timeout=self._seconds,
            )
        except ssl.SSLError as error:
            if spare is not None and speaks_no_tls(error.reason):
                _say(spare, tls.plain_answer)
            raise
        finally:
            if spare is not None:
                spare.close()

    def _takes(
        self,
        tls: Certified,
        host: str,
        make: Callable[[], asyncio.Protocol],
        transport: asyncio.BaseTransport,
    ) -> asyncio.Protocol | None:
        """The protocol for a client with a certificate of the authority; None: it is not one of the cluster's."""
        why = tls.why_refused(transport.get_extra_info("peercert"))
        if why is None:
            return make()
        self._tell("certificate", host, why)
        return None

    def _tell(self, kind: str, host: str, why: str) -> None:
        self._bad.tell(
            kind,
            "refused %(address)s, which connected to %(service)s: %(reason)s",
            address=host,
            service=self._service,
            reason=why,
        )


class _CertificateCheck(asyncio.Protocol):
    """Checks the certificate after the handshake and before anything else, then passes the connection on."""

    def __init__(self, takes: Callable[[asyncio.BaseTransport], asyncio.Protocol | None]) -> None:
        self._takes = takes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast(asyncio.Transport, transport)  # uvloop's is one, and no subclass of it
        protocol = self._takes(made)
        if protocol is None:
            made.abort()
            return
        made.set_protocol(protocol)
        protocol.connection_made(made)


def _say(connection: socket.socket, last_words: bytes) -> None:
    """The event loop has given the connection up, so that it is written to as it is; a few bytes always find room."""
    try:
        connection.send(last_words)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it is gone already


def _kind(error: OSError) -> str:
    """Which of the sentences below it is."""
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "no certificate"
    return "no TLS" if speaks_no_tls(reason) else "handshake"


def _why(error: OSError) -> str:
    """Why a connection with TLS did not come about."""
    if isinstance(error, ssl.SSLCertVerificationError) and is_wrong_name(error.verify_code):
        return f"its certificate has another name: {error.verify_message}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not signed by the cluster's authority: {error.verify_message}"
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it has no certificate"
    if speaks_no_tls(reason):
        return "it does not use TLS, and this process does"
    if "ALERT" in reason:
        return f"it does not accept our certificate ({reason.lower().replace('_', ' ')})"
    if isinstance(error, ConnectionResetError):
        return "it ended the connection in the middle of the TLS handshake; it may not trust our certificate"
    if isinstance(error, ConnectionAbortedError | TimeoutError):
        return f"it did not finish the TLS handshake within {HANDSHAKE_SECONDS:g} s; it may not use TLS"
    return f"the TLS handshake failed: {error}"
