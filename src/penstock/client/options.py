"""The settings of a queue as a user writes them: durations in seconds, everything by name."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from penstock.client.duration import Duration, milliseconds
from penstock.client.failure import refused
from penstock.model.settings import (
    Consumption,
    Ordering,
    Overflow,
    QueueSettings,
    Replication,
    Stamps,
    WhenUncertain,
)


class QueueOptions(TypedDict, total=False):
    """What `create_queue` and `alter_queue` take; None lifts a limit or removes a setting."""

    ordering: Ordering
    """`best-effort` (default), `fifo`, `causal` or `clock`; fixed when the queue is created."""
    stamps: Stamps
    """Whose stamps order a `clock` queue: the `server`'s (default) or the `producer`'s."""
    window: Duration
    """How long messages ordered by their producers' stamps wait for older ones."""
    max_uncertainty: Duration
    """How uncertain the time of a `clock` queue may be."""
    when_uncertain: WhenUncertain
    """What happens to sends while it is more uncertain: `refuse` (default) or `hold`."""
    consumption: Consumption
    """`queue` (default): consumers delete; `log`: retained for readers; `both`. Fixed when the queue is created."""
    retain_bytes: int | None
    """A log keeps its newest messages of so many bytes, if they are not older than the retention."""
    idle_expiry: Duration | None
    """A queue that nobody has used for so long is deleted."""
    partitions: int
    """Into how many parts a cluster splits the queue; fixed when the queue is created."""
    replicas: int
    """How many nodes of a cluster hold each part."""
    replication: Replication
    """`sync` (default): acknowledged when all replicas in sync have it on disk; `async`: when the primary has."""
    min_in_sync: int | None
    """With fewer replicas in sync sends are refused; None: a majority."""
    max_messages: int | None
    max_bytes: int | None
    max_message_bytes: int
    overflow: Overflow
    """What happens to a full queue: `reject` (default), `drop-oldest` or `dead-letter`."""
    visibility_timeout: Duration
    """How long a received message is hidden from others."""
    retention: Duration
    """How long a message is kept."""
    delay: Duration
    """How long a message waits before it can be received."""
    default_ttl: Duration | None
    """How long a message without its own ttl is worth delivering."""
    deduplication_window: Duration
    """How long a deduplication id is remembered."""
    max_receives: int | None
    """A message received so often without being deleted goes to the dead-letter queue."""
    dead_letter_queue: str | None
    lifecycle: bool
    """Whether what becomes of its messages is written to the log `penstock.lifecycle`."""


_DURATIONS = {
    "visibility_timeout",
    "retention",
    "delay",
    "default_ttl",
    "deduplication_window",
    "window",
    "max_uncertainty",
    "idle_expiry",
}
_OPTIONS = set(QueueOptions.__annotations__)


def settings_of(options: QueueOptions) -> QueueSettings:
    """The settings of a new queue."""
    try:
        return msgspec.convert(changes_of(options), QueueSettings)
    except msgspec.ValidationError as error:
        raise refused(f"bad queue settings: {error}") from None


def changes_of(options: QueueOptions) -> dict[str, str | int | bool | None]:
    """The options by their names and units on the wire."""
    changes: dict[str, str | int | bool | None] = {}
    given: dict[str, Any] = dict(options)
    for name, value in given.items():
        if name not in _OPTIONS:
            raise refused(f"queues have no option {name!r}; they have {', '.join(sorted(_OPTIONS))}")
        if name in _DURATIONS:
            changes[f"{name}_ms"] = None if value is None else milliseconds(value, name)
        else:
            changes[name] = value
    return changes
