"""The monitoring server: `/metrics` for metrics, `/health` for whether requests get through.

Clients of this machine are served, except web pages of other sites. Clients of other machines must send a token; without a
configured one the server does not listen there.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from penstock.config.address import Address
from penstock.config.monitoring import MonitoringOptions
from penstock.frontend.local_only import why_not_served
from penstock.metrics.exposition import CONTENT_TYPE, Family, exposition
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.server import HttpServer
from penstock.runtime.processes.listening import SettingError, bind
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer

LIMITS = HttpLimits(max_connections=100)
TOKEN_CHARACTERS = 16
"""A shorter token could be guessed."""

_PLAIN = (("Content-Type", "text/plain; charset=utf-8"),)
_METRICS = (("Content-Type", CONTENT_TYPE),)

_ONLY_HERE = b"without monitoring.token_file only programs of this machine may look, at http://127.0.0.1 or localhost\n"

Answer = Callable[[HttpResponse], None]


class Sight(Protocol):
    """What the server can show; each method answers once, now or later."""

    def metrics(self, reply: Answer) -> None:
        """All figures."""
        ...

    def health(self, reply: Answer) -> None:
        """Whether requests get through."""
        ...


def figures(families: Iterable[Family]) -> HttpResponse:
    """The answer of `metrics`."""
    return HttpResponse(200, _METRICS, exposition(families))


def well() -> HttpResponse:
    """The answer of `health` where all is well."""
    return HttpResponse(200, _PLAIN, b"ok\n")


def failed(why: str) -> HttpResponse:
    """The answer if the engine cannot be asked."""
    return HttpResponse(503, _PLAIN, f"{why}\n".encode())


class Monitoring:
    """Serves metrics; made by `open_monitoring`."""

    def __init__(self, sight: Sight, token: str | None = None) -> None:
        self._sight = sight
        self._token = token
        self._server = HttpServer(self.handle, limits=LIMITS)
        self.address = Address("127.0.0.1", 0)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{self.address}/metrics"

    async def start(self, listen: Address) -> None:
        """Listens; raises `StartError`."""
        listener = bind(listen, "--monitoring-listen")
        self.address = Address(listen.host, listener.getsockname()[1])
        try:
            await self._server.start(listener)
        except BaseException:
            listener.close()
            raise

    async def close(self) -> None:
        """Answers what was asked and stops."""
        await self._server.close(1.0)

    def handle(self, request: HttpRequest, peer: Peer, reply: Answer) -> None:
        """One look."""
        if request.method not in ("GET", "HEAD"):
            reply(HttpResponse(405, (*_PLAIN, ("Allow", "GET, HEAD")), b"only GET\n"))
        elif self._token is None and not _is_ours(request, peer):
            reply(HttpResponse(403, _PLAIN, _ONLY_HERE))
        elif request.path == "/health":
            self._sight.health(reply if self._token is None else _without_reasons(reply))
        elif request.path != "/metrics":
            reply(HttpResponse(404, _PLAIN, b"look at /metrics or /health\n"))
        elif not self._may_look(request):
            challenge = ("WWW-Authenticate", "Bearer")
            reply(HttpResponse(401, (*_PLAIN, challenge), b"show the token of monitoring.token_file\n"))
        else:
            self._sight.metrics(reply)

    def _may_look(self, request: HttpRequest) -> bool:
        if self._token is None:
            return True
        shown = request.headers.get("authorization", "")
        return hmac.compare_digest(shown.encode(), f"Bearer {self._token}".encode())


def _is_ours(request: HttpRequest, peer: Peer) -> bool:
    """Whether a program of this machine looks. A web page may have its own name lead here, and its browser says that name."""
    headers = request.headers
    if (
        "host" not in headers and request.path == "/health"
    ):  # HTTP/1.0, which balancers use and browsers do not
        headers = headers | {"host": "localhost"}
    return why_not_served(headers, peer.address, may_be_typed=True) is None


def _without_reasons(reply: Answer) -> Answer:
    """A client of another machine without the token learns whether all is well, and not what is wrong."""
    return lambda answer: reply(answer if answer.status == 200 else failed("not well"))


async def open_monitoring(config: MonitoringOptions, sight: Sight) -> Monitoring | None:
    """Monitoring that listens, if it is to; raises `StartError`."""
    listen = config.monitoring_listen
    if listen is None:
        return None
    monitoring = Monitoring(sight, monitoring_token(config))
    await monitoring.start(listen)
    return monitoring


def monitoring_token(config: MonitoringOptions) -> str | None:
    """The token that clients must send, if any; raises `SettingError` if it is required and missing."""
    listen = config.monitoring_listen
    token = _token(config.monitoring_token_file)
    if token is None and listen is not None and not listen.is_loopback:
        raise SettingError(
            f"refuses to listen on {listen}: every client that reaches it could see the names and figures of all queues. Name a "
            "file with a token in monitoring.token_file, or listen on 127.0.0.1 (--monitoring-listen 127.0.0.1:9325)"
        )
    return token


def _token(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        token = Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingError(f"cannot read monitoring.token_file {file}: {why}") from None
    if len(token) < TOKEN_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingError(
            f"the token in {file} must have at least {TOKEN_CHARACTERS} visible characters, such as "
            "`openssl rand -hex 32` makes"
        )
    return token
