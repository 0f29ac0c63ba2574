"""State that all requests of a front end share: links, caches and counters."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.authenticate import Authenticator
from penstock.frontend.engine import EngineLink
from penstock.frontend.messages.waiting_receives import WaitingReceives
from penstock.frontend.queues.directory import QueueDirectory
from penstock.frontend.queues.metadata import PREFIX as QUEUES
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.registry import Registry
from penstock.frontend.throttle.failed_signatures import FailedSignatures
from penstock.frontend.throttle.throttle import Throttle
from penstock.frontend.usage.record_usage import RecordedAnswers, RequestIds
from penstock.frontend.world import FrontEndWorld
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.request_limits import RequestLimit
from penstock.metadata.users.directory import UserDirectory
from penstock.metadata.users.register import REGISTER_KEY
from penstock.metadata.users.users import KEYS, USERS
from penstock.sqs.compatibility import Compatibility
from penstock.usage.collector import UsageCollector


class Services:
    """One of each for a front end; none of it belongs to a single request."""

    def __init__(
        self,
        *,
        engine: EngineLink,
        registry: Registry,
        metadata: MetadataCache,
        users: UserDirectory,
        usage: UsageCollector,
        home: DefaultAccount,
        compatibility: Compatibility,
        address: str,
        public_url: str | None,
        open_without_users: bool,
        now_ms: Callable[[], int],
        timer_us: Callable[[], int],
        token: Callable[[int], bytes],
        later: Callable[[Callable[[], None]], object],
        wall_ms: Callable[[], int] | None = None,
        failed_signatures: RequestLimit | None = None,
        throttle: Throttle | None = None,
    ) -> None:
        """`throttle`: one that other servers of the process count with too."""
        self.world = FrontEndWorld(engine, registry, later)
        self.metadata = metadata
        self.answers = RecordedAnswers(usage, later)
        self.home = home
        self.compatibility = compatibility
        self.address = address
        """Host and port for queue URLs where a request names no host."""
        self.public_url = public_url
        self.now_ms = now_ms
        self.wall_ms = wall_ms or now_ms
        """The wall clock for signatures, which may go back. `now_ms` never does, so after a correction of an hour it would be
        wrong for hours, and every client would be refused.
        """
        self.timer_us = timer_us
        self.token = token
        self.request_ids = RequestIds(token(10))
        self.queues = QueueDirectory(home, metadata)
        self.throttle = throttle or Throttle(metadata)
        self.waiting = WaitingReceives()
        for changing in (USERS, KEYS, REGISTER_KEY, QUEUES):
            metadata.listen(changing, self.waiting.review)
        self.failures = FailedSignatures(failed_signatures)
        self.authenticator = Authenticator(users, home, self.failures, open_without_users=open_without_users)
