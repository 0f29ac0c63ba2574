"""What Penstock adds to a message, usable from any SDK: message attributes with reserved names.

They are ordinary attributes: stored, returned and part of the checksum, so SDKs treat them as usual; an extended server
also acts on them. In `strict` mode they are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.model import limits
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.refusals import invalid_value
from penstock.sqs.shapes.messages import MessageAttributeValue

PRIORITY = "Penstock.Priority"
TIME_TO_LIVE = "Penstock.TimeToLiveSeconds"
TIMESTAMP = "Penstock.TimestampMicroseconds"
SESSION = "Penstock.Session"

_SESSION_CHARACTERS = 128

_TTL_SECONDS_MAX = limits.RETENTION_MS_MAX // limits.SECOND_MS


class Extensions(NamedTuple):
    """The options of a message beyond SQS; None = the queue's default."""

    priority: int | None = None
    time_to_live_ms: int | None = None
    timestamp_us: int | None = None
    """When its producer made it, for queues that go by that."""
    session: str | None = None
    """The session that numbers and stamps it, if one user is several producers."""


NO_EXTENSIONS = Extensions()


def read_extensions(
    attributes: Mapping[str, MessageAttributeValue], compatibility: Compatibility
) -> Extensions:
    """The extensions that checked attributes ask for."""
    if not attributes or not compatibility.extensions:
        return NO_EXTENSIONS
    seconds = _integer(attributes, TIME_TO_LIVE, 1, _TTL_SECONDS_MAX)
    return Extensions(
        _integer(attributes, PRIORITY, 0, limits.PRIORITIES - 1),
        None if seconds is None else seconds * limits.SECOND_MS,
        _integer(attributes, TIMESTAMP, 1, limits.TIMESTAMP_US_MAX),
        _session(attributes),
    )


def _session(attributes: Mapping[str, MessageAttributeValue]) -> str | None:
    attribute = attributes.get(SESSION)
    if attribute is None:
        return None
    text = attribute.string_value or ""
    if not 0 < len(text) <= _SESSION_CHARACTERS:
        raise invalid_value(text, SESSION, f"Must be a text of 1 to {_SESSION_CHARACTERS} characters.")
    return text


def _integer(attributes: Mapping[str, MessageAttributeValue], name: str, low: int, high: int) -> int | None:
    attribute = attributes.get(name)
    if attribute is None:
        return None
    text = attribute.string_value or ""
    value = int(text) if text.isascii() and text.isdecimal() and len(text) <= 17 else -1
    if not low <= value <= high:
        raise invalid_value(text, name, f"Must be an integer from {low} to {high}.")
    return value
