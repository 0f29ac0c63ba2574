"""Invalid settings of a queue, with sentences that say why."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from penstock.model import limits
from penstock.model.document import RESERVED
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import SETTINGS, QueueSettings

QUEUE_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,{limits.QUEUE_NAME_CHARACTERS - 1}}}")


def check_queue_name(name: str) -> None:
    """Raises with a sentence that says which rule the name breaks."""
    if not QUEUE_NAME.fullmatch(name):
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"{name!r} is not a queue name: use 1 to {limits.QUEUE_NAME_CHARACTERS} letters, digits, '-', '_' "
            "or '.' (not first)",
        )


def check_chosen(names: Iterable[str]) -> None:
    """Raises if a user who creates or changes a queue names a setting that this version does not have."""
    for name in names:
        if name not in SETTINGS:
            raise PenstockError(ErrorCode.BAD_REQUEST, f"bad queue settings: there is no setting {name!r}")


def check_new(settings: QueueSettings) -> None:
    """Raises if the settings of a new queue contain a reserved field."""
    check_chosen(name for name in RESERVED if getattr(settings, name) is not msgspec.UNSET)


def check_settings(name: str, settings: QueueSettings) -> None:
    """Raises with a sentence that names the first setting that cannot be."""
    for field, (_, _, _, _, row) in SETTINGS.items():
        value, low, high = getattr(settings, field), row.low, row.high
        if low is None or high is None or value is None or low <= value <= high:
            continue
        raise PenstockError(ErrorCode.BAD_REQUEST, f"{field} must be between {low} and {high}, not {value}")
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
    """For callers that know how many replicas the queue will have; a client that names no number does not."""
    if settings.min_in_sync is not None and settings.min_in_sync > settings.replicas:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"min_in_sync {settings.min_in_sync} is more than there are replicas ({settings.replicas})",
        )


def _check_order(settings: QueueSettings) -> None:
    """Checks order by time."""
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


def _check_log(settings: QueueSettings) -> None:
    """Checks the settings of a log."""
    if settings.retain_bytes is not None and not settings.has_log:
        raise PenstockError(ErrorCode.BAD_REQUEST, "retain_bytes is for logs (consumption 'log' or 'both')")
    if settings.has_queue:
        return
    for field, setting in SETTINGS.items():
        if not setting.row.for_logs and getattr(settings, field):
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"{field} is for queues whose messages are received; consumption 'log' has retention_ms and "
                "retain_bytes",
            )


def settings_difference(existing: QueueSettings, wanted: QueueSettings) -> str | None:
    """The first setting that differs; those of newer versions are ignored, because the requester could not name them."""
    return next((name for name in SETTINGS if getattr(existing, name) != getattr(wanted, name)), None)


def changed_settings(current: QueueSettings, changes: dict[str, object]) -> QueueSettings:
    """Applies named changes, refusing unknown names, wrong types and a change of ordering."""
    check_chosen(changes)
    merged = {**msgspec.to_builtins(current), **changes}
    try:
        settings = msgspec.convert(merged, QueueSettings)
    except msgspec.ValidationError as error:
        raise PenstockError(ErrorCode.BAD_REQUEST, f"bad queue settings: {error}") from None
    for field, setting in SETTINGS.items():
        if setting.row.fixed and getattr(settings, field) != getattr(current, field):
            raise PenstockError(ErrorCode.BAD_REQUEST, f"{field} is fixed when the queue is created")
    return settings
