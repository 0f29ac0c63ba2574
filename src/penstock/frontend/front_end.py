"""The front end: everything its requests share, and the way in."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.authenticate import Authenticator
from penstock.frontend.conversation import Conversation
from penstock.frontend.engine import EngineLink
from penstock.frontend.exchange import Exchange
from penstock.frontend.native_names import Home
from penstock.frontend.queue_directory import QueueDirectory
from penstock.frontend.registry import Registry
from penstock.frontend.request_ids import RequestIds
from penstock.frontend.throttle import Throttle
from penstock.metadata.cache import MetadataCache
from penstock.metadata.user_directory import UserDirectory
from penstock.sqs.answers import refusal
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.http import HttpRequest, HttpResponse, Peer
from penstock.sqs.protocol import Protocol
from penstock.usage.collector import UsageCollector


class FrontEnd:
    """Stateless but for what it has looked up and counted; any number of them may serve one engine."""

    def __init__(
        self,
        *,
        engine: EngineLink,
        registry: Registry,
        metadata: MetadataCache,
        users: UserDirectory,
        usage: UsageCollector,
        home: Home,
        compatibility: Compatibility,
        address: str,
        public_url: str | None,
        open_without_users: bool,
        now_ms: Callable[[], int],
        timer_us: Callable[[], int],
        token: Callable[[int], bytes],
    ) -> None:
        self.engine = engine
        self.registry = registry
        self.metadata = metadata
        self.usage = usage
        self.home = home
        self.compatibility = compatibility
        self.address = address
        """Host and port for queue URLs where a request names no host."""
        self.public_url = public_url
        self.now_ms = now_ms
        self.timer_us = timer_us
        self.token = token
        self.request_ids = RequestIds(token(10))
        self.queues = QueueDirectory(home, metadata)
        self.throttle = Throttle(metadata)
        self.waiting: set[Conversation] = set()
        """Receives that wait for messages."""
        self.authenticator = Authenticator(users, home, open_without_users=open_without_users)

    def handle(
        self, request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]
    ) -> Callable[[], None] | None:
        """Answers a request through `reply`, at once or later; returns how to cancel it, if it is under way."""
        return Exchange(self, request, peer, reply).run()

    def end_waiting(self) -> None:
        """Answers everybody who waits for messages: the server stops."""
        for conversation in list(self.waiting):
            conversation.stop_waiting()

    def refuse(self, status: int, sentence: str) -> HttpResponse:
        """The answer to what never became a request, in the form that SDKs understand."""
        error = SqsError(_KIND_OF_STATUS.get(status, ErrorKind.SERIALIZATION), sentence)
        response = refusal(Protocol.QUERY, error, self.request_ids.next())
        return HttpResponse(status, response.headers, response.body)


_KIND_OF_STATUS = {
    413: ErrorKind.REQUEST_TOO_LARGE,
    500: ErrorKind.INTERNAL_FAILURE,
    503: ErrorKind.SERVICE_UNAVAILABLE,
}
