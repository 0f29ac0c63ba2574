"""Queues by name: the engine's description and the metadata, combined and cached.

An entry is used until its metadata changes, the engine says that the queue is gone, or it is a second old (the native
protocol may have altered the queue meanwhile).
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from penstock.frontend.queues.metadata import PREFIX, QueueMetadata, decode, key_of, refresh
from penstock.frontend.queues.native_names import DefaultAccount, arn_of
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.frontend.queues.unfinished_queues import is_unfinished
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import ABSENT, Change
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import SECOND_MS
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.sqs.attributes.queue_settings import attributes_of
from penstock.sqs.names import FIFO_SUFFIX, QueueArn
from penstock.sqs.policies.policy import Policy, parse_queue_policy
from penstock.sqs.refusals import queue_does_not_exist
from penstock.steps.asking import ask
from penstock.steps.step import Steps
from penstock.wire.messages import DescribeQueue, QueueDescription

REFRESH_MS = 1 * SECOND_MS
REMEMBERED = 100_000


class QueueDirectory:
    """The recently used queues."""

    def __init__(self, home: DefaultAccount, metadata: MetadataCache) -> None:
        self._home = home
        self._metadata = metadata
        self._queues: dict[str, ResolvedQueue] = {}
        metadata.listen(PREFIX, self._changed)

    def remembered(self, native_name: str, now_ms: int) -> ResolvedQueue | None:
        """The queue, if what is known of it is fresh."""
        queue = self._queues.get(native_name)
        return queue if queue is not None and now_ms - queue.resolved_ms < REFRESH_MS else None

    def resolve(self, native_name: str, now_ms: int) -> Steps[ResolvedQueue]:
        """The queue of a name; raises `PenstockError` where the engine has none."""
        queue = self.remembered(native_name, now_ms)
        if queue is None:
            queue = yield from self.fresh(native_name, now_ms)
        return queue

    def fresh(self, native_name: str, now_ms: int) -> Steps[ResolvedQueue]:
        """The queue as it is now, without the cache; raises `PenstockError` if the engine has none."""
        description = yield from ask(DescribeQueue(native_name), QueueDescription)
        known = self._queues.get(native_name)
        if known is None or known.queue_id != description.queue_id:
            metadata, _ = self.metadata_of(native_name, description.queue_id)
            if metadata is None:
                # Perhaps it was just created, through a front end whose change was not received here yet.
                yield from refresh(key_of(native_name))
        return self.learn(description, now_ms)

    def again(self, queue: ResolvedQueue, now_ms: int) -> Steps[ResolvedQueue]:
        """A queue as it is now; raises `PenstockError` where it is gone, also where another one has its name by now.

        What a caller may do was decided by the policy of the one that it was.
        """
        now = yield from self.fresh(queue.native_name, now_ms)
        check_same(queue, now.queue_id)
        return now

    def find(self, native_name: str, now_ms: int) -> Steps[ResolvedQueue | None]:
        """The queue as it is now, or None."""
        try:
            return (yield from self.fresh(native_name, now_ms))
        except PenstockError as error:
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
            self.forget(native_name)
            return None

    def learn(self, description: QueueDescription, now_ms: int) -> ResolvedQueue:
        """A queue as the engine has just described it."""
        name = description.name
        arn = arn_of(self._home, name)
        if arn is None:
            raise queue_does_not_exist()  # SQS has no words for its name
        metadata, version = self.metadata_of(name, description.queue_id)
        attributes = self._attributes(description, metadata, arn)
        queue = ResolvedQueue(
            queue_id=description.queue_id,
            native_name=name,
            arn=arn,
            settings=description.settings,
            attributes=attributes,
            tags=metadata.tags if metadata is not None else {},
            traits=attributes.traits,
            policy=_policy(attributes),
            created_ms=description.created_ms,
            modified_ms=metadata.modified_ms if metadata is not None else description.created_ms,
            purged_ms=metadata.purged_ms if metadata is not None else None,
            metadata_version=version,
            resolved_ms=now_ms,
            metadata_later=metadata.later if metadata is not None else msgspec.UNSET,
        )
        if len(self._queues) >= REMEMBERED:
            self._queues.clear()
        self._queues[name] = queue
        return queue

    def forget(self, native_name: str) -> None:
        """The queue is gone, or is no longer what is remembered."""
        self._queues.pop(native_name, None)

    def metadata_of(self, native_name: str, queue_id: int) -> tuple[QueueMetadata | None, int]:
        """The metadata of this incarnation of a queue, and the version of the entry, also if it belongs to another one."""
        entry = self._metadata.get(key_of(native_name))
        if entry is None:
            return None, ABSENT
        metadata = decode(entry.value)
        return (metadata if metadata.queue_id == queue_id else None), entry.version

    def metadata_by_name(self, native_name: str) -> QueueMetadata | None:
        """The metadata under a name, of any incarnation."""
        entry = self._metadata.get(key_of(native_name))
        return decode(entry.value) if entry is not None else None

    def is_unfinished(self, native_name: str, now_ms: int) -> bool:
        """Whether a queue of that name without metadata may be one that is being made."""
        return is_unfinished(self._metadata, native_name, now_ms)

    def policy_of(self, native_name: str, queue_id: int) -> Policy | None:
        """The policy of this incarnation of a queue, without asking the engine."""
        metadata, _ = self.metadata_of(native_name, queue_id)
        return _policy(metadata.attributes) if metadata is not None else None

    def _attributes(
        self, description: QueueDescription, metadata: QueueMetadata | None, arn: QueueArn
    ) -> QueueAttributes:
        """The engine is right about what it knows, the metadata about the rest."""
        settings = description.settings
        target = settings.dead_letter_queue
        target_arn = arn_of(self._home, target) if target is not None else None
        # Without metadata too: the defaults distinguish a message size of SQS from one of the native protocol. A queue
        # ordered by time may be of either kind, and then its name decides.
        by_name = arn.name.endswith(FIFO_SUFFIX) and settings.strict
        current = metadata.attributes if metadata is not None else QueueAttributes(fifo_queue=by_name)
        return attributes_of(settings, str(target_arn) if target_arn is not None else None, current)

    def _changed(self, change: Change) -> None:
        self.forget(change.key.removeprefix(PREFIX))


def check_same(queue: ResolvedQueue, queue_id: int) -> None:
    """Raises if the name now belongs to another queue, for which the rights must be checked again."""
    if queue_id != queue.queue_id:
        raise PenstockError(
            ErrorCode.QUEUE_NOT_FOUND, f"queue {queue.native_name!r} was deleted and created again"
        )


def _policy(attributes: QueueAttributes) -> Policy | None:
    return _parsed_policy(attributes.policy) if attributes.policy else None


@lru_cache(maxsize=1024)
def _parsed_policy(text: str) -> Policy:
    """The same object for the same text: a queue is looked up every second, and decisions are remembered by it."""
    return parse_queue_policy(text)
