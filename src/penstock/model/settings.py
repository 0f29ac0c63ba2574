"""Queue settings: what a user may choose, with defaults and the checks that explain themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from penstock.model import limits
from penstock.model.document import RESERVED, Document
from penstock.model.errors import ErrorCode, PenstockError

Overflow = Literal["reject", "drop-oldest", "dead-letter"]
Ordering = Literal["best-effort", "fifo", "causal", "clock"]
Stamps = Literal["server", "producer"]
WhenUncertain = Literal["hold", "refuse"]
Consumption = Literal["queue", "log", "both"]
Replication = Literal["sync", "async"]

QUEUE_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,{limits.QUEUE_NAME_CHARACTERS - 1}}}")


class QueueSettings(Document, frozen=True, kw_only=True):
    """Everything a queue can be told; `None` means "no limit" or "none". What newer versions can tell it is kept."""

    ordering: Ordering = "best-effort"
    stamps: Stamps = "server"
    """Whose stamps order a `clock` queue; a `causal` queue goes by its producers' in any case."""
    window_ms: int = limits.WINDOW_MS_DEFAULT
    """How long messages ordered by their producers' stamps wait for older ones."""
    max_uncertainty_ms: int = limits.MAX_UNCERTAINTY_MS_DEFAULT
    """How uncertain the time of a `clock` queue may be."""
    when_uncertain: WhenUncertain = "refuse"
    """What happens to sends while it is more uncertain."""
    consumption: Consumption = "queue"
    """Whether messages are deleted by consumers, retained for readers of the log, or both."""
    retain_bytes: int | None = None
    """A log keeps its newest messages of so many bytes, if they are not older than the retention."""
    idle_expiry_ms: int | None = None
    """A queue that nobody has used for so long is deleted."""
    partitions: int = 1
    """Into how many parts a cluster splits the queue."""
    replicas: int = 1
    """How many nodes of a cluster hold each part."""
    replication: Replication = "sync"
    """Whether a send is acknowledged when all replicas in sync have it on disk, or when the primary has."""
    min_in_sync: int | None = None
    """With fewer replicas in sync sends are refused; None: a majority of the replicas."""
    max_messages: int | None = None
    max_bytes: int | None = None
    max_message_bytes: int = limits.MESSAGE_BYTES_DEFAULT
    overflow: Overflow = "reject"
    visibility_timeout_ms: int = limits.VISIBILITY_TIMEOUT_MS_DEFAULT
    retention_ms: int = limits.RETENTION_MS_DEFAULT
    delay_ms: int = 0
    default_ttl_ms: int | None = None
    deduplication_window_ms: int = limits.DEDUPLICATION_WINDOW_MS_DEFAULT
    max_receives: int | None = None
    dead_letter_queue: str | None = None
    lifecycle: bool = False
    """Whether what becomes of its messages is written to the log `penstock.lifecycle`."""

    @property
    def fifo(self) -> bool:
        """Whether groups are delivered in the order of the server's numbers."""
        return self.ordering == "fifo"

    @property
    def strict(self) -> bool:
        """Whether groups are delivered in one order, each message only after its predecessor is gone."""
        return self.ordering != "best-effort"

    @property
    def server_stamped(self) -> bool:
        """Whether the server stamps messages with its clock, and answers when the stamp has passed."""
        return self.ordering == "clock" and self.stamps == "server"

    @property
    def sorted(self) -> bool:
        """Whether messages are sorted by their producers' stamps before they are delivered."""
        return self.ordering == "causal" or (self.ordering == "clock" and self.stamps == "producer")

    @property
    def least_in_sync(self) -> int:
        """How many replicas must be in sync for sends to be taken."""
        return self.min_in_sync or self.replicas // 2 + 1

    @property
    def has_queue(self) -> bool:
        """Whether consumers receive and delete messages."""
        return self.consumption != "log"

    @property
    def has_log(self) -> bool:
        """Whether messages are retained for readers of the log."""
        return self.consumption != "queue"


SETTINGS = tuple(name for name in QueueSettings.__struct_fields__ if name not in RESERVED)
"""The names of all settings that this version knows."""

_FIXED = ("ordering", "stamps", "consumption", "partitions")

_RANGES: dict[str, tuple[int, int]] = {
    "max_messages": (1, limits.QUEUE_MESSAGES_MAX),
    "max_bytes": (1, limits.QUEUE_BYTES_MAX),
    "max_message_bytes": (1, limits.MESSAGE_BYTES_MAX),
    "visibility_timeout_ms": (0, limits.VISIBILITY_TIMEOUT_MS_MAX),
    "retention_ms": (limits.RETENTION_MS_MIN, limits.RETENTION_MS_MAX),
    "delay_ms": (0, limits.RETENTION_MS_MAX),
    "default_ttl_ms": (1, limits.RETENTION_MS_MAX),
    "deduplication_window_ms": (1, limits.DEDUPLICATION_WINDOW_MS_MAX),
    "max_receives": (1, limits.RECEIVE_COUNT_MAX),
    "window_ms": (0, limits.WINDOW_MS_MAX),
    "max_uncertainty_ms": (1, limits.WINDOW_MS_MAX),
    "retain_bytes": (1, limits.QUEUE_BYTES_MAX),
    "partitions": (1, limits.PARTITIONS_PER_QUEUE),
    "replicas": (1, limits.REPLICAS_PER_PARTITION),
    "min_in_sync": (1, limits.REPLICAS_PER_PARTITION),
    "idle_expiry_ms": (limits.IDLE_EXPIRY_MS_MIN, limits.RETENTION_MS_MAX),
}


def check_queue_name(name: str) -> None:
    """Raises with a sentence that says which rule the name breaks."""
    if not QUEUE_NAME.fullmatch(name):
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"{name!r} is not a queue name: use 1 to {limits.QUEUE_NAME_CHARACTERS} letters, digits, '-', '_' "
            "or '.' (not first)",
        )


def check_chosen(names: Iterable[str]) -> None:
    """Raises where somebody who makes or changes a queue names what is no setting of this version."""
    for name in names:
        if name not in SETTINGS:
            raise PenstockError(ErrorCode.BAD_REQUEST, f"bad queue settings: there is no setting {name!r}")


def check_new(settings: QueueSettings) -> None:
    """Raises where whoever makes a queue has put something into its settings that is nobody's to choose."""
    check_chosen(name for name in RESERVED if getattr(settings, name) is not msgspec.UNSET)


def check_settings(name: str, settings: QueueSettings) -> None:
    """Raises with a sentence that names the first setting that cannot be."""
    for field, (low, high) in _RANGES.items():
        value = getattr(settings, field)
        if value is not None and not low <= value <= high:
            raise PenstockError(
                ErrorCode.BAD_REQUEST, f"{field} must be between {low} and {high}, not {value}"
            )
    if settings.delay_ms > settings.retention_ms:
        raise PenstockError(
            ErrorCode.BAD_REQUEST, "delay_ms is longer than retention_ms: nothing could be delivered"
        )
    if settings.dead_letter_queue is not None:
        check_queue_name(settings.dead_letter_queue)
        if settings.dead_letter_queue == name:
            raise PenstockError(ErrorCode.BAD_REQUEST, f"{name!r} cannot be its own dead-letter queue")
    if settings.dead_letter_queue is None and settings.max_receives is not None:
        raise PenstockError(
            ErrorCode.BAD_REQUEST, "max_receives needs a dead_letter_queue to move messages to"
        )
    if settings.dead_letter_queue is None and settings.overflow == "dead-letter":
        raise PenstockError(ErrorCode.BAD_REQUEST, "overflow 'dead-letter' needs a dead_letter_queue")
    _check_order(settings)
    _check_log(settings)


def check_in_sync(settings: QueueSettings) -> None:
    """For whoever knows how many replicas the queue will have: a client that says nothing of them does not."""
    if settings.min_in_sync is not None and settings.min_in_sync > settings.replicas:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"min_in_sync {settings.min_in_sync} is more than there are replicas ({settings.replicas})",
        )


def _check_order(settings: QueueSettings) -> None:
    """What order by time leaves no room for."""
    if settings.stamps == "producer" and settings.ordering != "clock":
        raise PenstockError(
            ErrorCode.BAD_REQUEST, "stamps 'producer' is for ordering 'clock'; 'causal' has them anyway"
        )
    if settings.sorted and settings.delay_ms:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            "a queue ordered by its producers' stamps has a window_ms, not a delay_ms",
        )
    if settings.sorted and settings.has_log:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            "a log is in the order of arrival: producers' stamps can order a queue only (consumption 'queue')",
        )


_NOT_FOR_LOGS = (
    "max_messages",
    "max_bytes",
    "delay_ms",
    "default_ttl_ms",
    "max_receives",
    "dead_letter_queue",
)


def _check_log(settings: QueueSettings) -> None:
    """What belongs to a log, and what does not."""
    if settings.retain_bytes is not None and not settings.has_log:
        raise PenstockError(ErrorCode.BAD_REQUEST, "retain_bytes is for logs (consumption 'log' or 'both')")
    if settings.has_queue:
        return
    for field in _NOT_FOR_LOGS:
        if getattr(settings, field):
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"{field} is for queues whose messages are received; consumption 'log' has retention_ms and "
                "retain_bytes",
            )


def settings_difference(existing: QueueSettings, wanted: QueueSettings) -> str | None:
    """The first setting that differs; those of newer versions do not count: who asks could not have named them."""
    return next((name for name in SETTINGS if getattr(existing, name) != getattr(wanted, name)), None)


def changed_settings(current: QueueSettings, changes: dict[str, object]) -> QueueSettings:
    """Applies named changes, refusing unknown names, wrong types and a change of ordering."""
    check_chosen(changes)
    merged = {**msgspec.to_builtins(current), **changes}
    try:
        settings = msgspec.convert(merged, QueueSettings)
    except msgspec.ValidationError as error:
        raise PenstockError(ErrorCode.BAD_REQUEST, f"bad queue settings: {error}") from None
    for field in _FIXED:
        if getattr(settings, field) != getattr(current, field):
            raise PenstockError(ErrorCode.BAD_REQUEST, f"{field} is fixed when the queue is created")
    return settings
