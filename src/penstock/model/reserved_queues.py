"""Protects the queues that Penstock itself writes from accidental changes.

They can be read, tailed and described like any other log, and their retention can be changed. Everything else is refused
with a sentence that says what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings

RESERVED_QUEUES = frozenset({"penstock.lifecycle", "penstock.usage"})

_MAY_CHANGE = frozenset({"retention_ms", "retain_bytes", "replication", "min_in_sync"})


def is_reserved(name: str) -> bool:
    """Whether the queue, or partition of one as nodes call it, is written by Penstock itself."""
    return name in RESERVED_QUEUES or (
        name.startswith("penstock.") and name.partition("~")[0] in RESERVED_QUEUES
    )


def check_not_reserved(name: str, what: str) -> None:
    """Raises where a user is about to do something to such a queue that only Penstock does."""
    if is_reserved(name):
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            f"{name!r} is written by Penstock itself: it cannot be {what}; it can be read, and what it retains can be "
            "changed (retention, retain_bytes)",
        )


def check_may_be(name: str, settings: QueueSettings) -> None:
    """Raises where a queue of such a name would not be a log, or be followed itself, or would get dead letters."""
    if is_reserved(name) and (settings.has_queue or settings.lifecycle):
        check_not_reserved(name, "anything but a log (consumption 'log') whose own lifecycle is not followed")
    if settings.dead_letter_queue is not None:
        check_not_reserved(settings.dead_letter_queue, "a dead-letter queue")


def check_may_alter(name: str, changes: Iterable[str]) -> None:
    """Raises where a change of such a queue is about more than what is kept of it."""
    if any(field not in _MAY_CHANGE for field in changes):
        check_not_reserved(name, "altered otherwise")
