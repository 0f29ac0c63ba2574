"""The settings of a queue as users of the client write them: durations in seconds, all by name."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.client.connection.failure import refused
from penstock.client.duration import milliseconds
from penstock.client.queue_options import QueueOptions
from penstock.model.settings import SETTINGS, QueueSettings

_OPTIONS = {setting.option: setting for setting in SETTINGS.values()}


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
        setting = _OPTIONS.get(name)
        if setting is None:
            raise refused(f"queues have no option {name!r}; they have {', '.join(sorted(_OPTIONS))}")
        in_seconds = setting.kind == "duration" and value is not None
        changes[setting.name] = milliseconds(value, name) if in_seconds else value
    return changes
