"""Queue settings: what a user may choose, with defaults and the checks that explain themselves."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError

Overflow = Literal["reject", "drop-oldest", "dead-letter"]
Ordering = Literal["best-effort", "fifo"]

QUEUE_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,{limits.QUEUE_NAME_CHARACTERS - 1}}}")


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a queue can be told; `None` means "no limit" or "none"."""

    ordering: Ordering = "best-effort"
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

    @property
    def fifo(self) -> bool:
        """Whether groups are delivered in strict order."""
        return self.ordering == "fifo"


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
}


def check_queue_name(name: str) -> None:
    """Raises with a sentence that says which rule the name breaks."""
    if not QUEUE_NAME.fullmatch(name):
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"{name!r} is not a queue name: use 1 to {limits.QUEUE_NAME_CHARACTERS} letters, digits, '-', '_' "
            "or '.' (not first)",
        )


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


def changed_settings(current: QueueSettings, changes: dict[str, object]) -> QueueSettings:
    """Applies named changes, refusing unknown names, wrong types and a change of ordering."""
    merged = {**msgspec.structs.asdict(current), **changes}
    try:
        settings = msgspec.convert(merged, QueueSettings)
    except msgspec.ValidationError as error:
        raise PenstockError(ErrorCode.BAD_REQUEST, f"bad queue settings: {error}") from None
    if settings.ordering != current.ordering:
        raise PenstockError(ErrorCode.BAD_REQUEST, "ordering is fixed when the queue is created")
    return settings
