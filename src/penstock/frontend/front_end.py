"""The front end: the way in, for whoever reads HTTP requests."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.pipeline import Pipeline
from penstock.frontend.services import Services
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from penstock.sqs.protocols.protocol import Protocol, refusal

HEALTH_PATH = "/health"
"""Where a load balancer asks whether to send anything here. A front end that can answer is fit: what it needs behind it
(nodes, metadata) others would lack as well. Nobody is asked who they are, and nothing is told."""
_HEALTHY = HttpResponse(200, (("Content-Type", "text/plain; charset=utf-8"),), b"ok\n")


class FrontEnd:
    """Stateless but for what it has looked up and counted; any number of them may serve one engine."""

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
        """Answers everybody who waits for messages, now and from now on: the server stops."""
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
