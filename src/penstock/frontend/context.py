"""The input of an action: the request, its caller, its queue, and the lookups."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.frontend.queues.directory import QueueDirectory
from penstock.frontend.queues.native_names import DefaultAccount, native_name
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.frontend.session import Session
from penstock.metadata.mirror.cache import MetadataCache
from penstock.sqs.attributes.queue_attributes import DeduplicationScope
from penstock.sqs.call import Call
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.names import QueueArn, queue_url
from penstock.sqs.refusals import queue_does_not_exist


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """One request while its action runs."""

    call: Call
    session: Session
    resolved: ResolvedQueue | None
    deduplication_scope: DeduplicationScope
    """By what messages that are sent to the queue are compared with earlier ones."""
    now_ms: int
    endpoint: Callable[[], str]
    """Scheme, host and port that the caller used: the beginning of queue URLs in answers."""
    trace_header: str | None
    compatibility: Compatibility
    home: DefaultAccount
    queues: QueueDirectory
    metadata: MetadataCache
    may: Callable[[str, QueueArn], bool]
    """Whether the caller's own policies allow an action on a queue that the call does not name."""
    token: Callable[[int], bytes]
    """So many random bytes: dice are an argument, as time is."""

    @property
    def queue(self) -> ResolvedQueue:
        """The queue of an action on a queue."""
        if self.resolved is None:
            raise queue_does_not_exist()
        return self.resolved

    def url_of(self, arn: QueueArn) -> str:
        """The URL that is given out for a queue."""
        return queue_url(self.endpoint(), arn.account, arn.name)

    def native_name_of(self, arn: QueueArn) -> str:
        """The engine's name of a queue."""
        return native_name(self.home, arn.region, arn.account, arn.name)
