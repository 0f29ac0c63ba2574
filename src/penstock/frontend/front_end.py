"""The front end: the entry point for HTTP requests."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.pipeline import Pipeline
from penstock.frontend.services import Services
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from penstock.sqs.protocols.protocol import Protocol, refusal

HEALTH_PATH = "/health"
"""The path of a load balancer's health check. A front end that answers is healthy: without the nodes or the metadata, other
front ends would have the same problem. The check needs no credentials and its answer contains nothing else.
"""
_HEALTHY = HttpResponse(200, (("Content-Type", "text/plain; charset=utf-8"),), b"ok\n")


class FrontEnd:
    """Stateless except for caches and counters; any number of front ends may serve one engine."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def handle(
        self, request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]
    ) -> Callable[[], None] | None:
        """Answers a request through `reply`, at once or later; returns how to cancel it, if it is under way."""
        if request.path == HEALTH_PATH and request.method in ("GET", "HEAD"):
            reply(_HEALTHY)
            return None
        return Pipeline(self._services, request, peer, reply).run()

    def end_waiting(self) -> None:
        """Ends all waiting receives, now and in future, because the server stops."""
        self._services.waiting.end()

    def refuse(self, status: int, sentence: str) -> HttpResponse:
        """The answer to what never became a request, in the form that SDKs understand."""
        error = SqsError(_KIND_OF_STATUS.get(status, ErrorKind.SERIALIZATION), sentence)
        response = refusal(Protocol.QUERY, error, self._services.request_ids.next())
        return HttpResponse(status, response.headers, response.body)


_KIND_OF_STATUS = {
    413: ErrorKind.REQUEST_TOO_LARGE,
    500: ErrorKind.INTERNAL_FAILURE,
    503: ErrorKind.SERVICE_UNAVAILABLE,
}
