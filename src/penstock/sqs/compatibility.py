"""How strictly SQS's own limits are enforced: `strict` as in SQS, `extended` up to Penstock's limits.

Only limits that SQS users ask to have removed differ. Page, batch and poll sizes are the same in both, because programs
depend on their errors.
"""

from __future__ import annotations

import msgspec

from penstock.model import limits

BATCH_ENTRIES = 10
BATCH_BYTES = 1_048_576
RECEIVE_MESSAGES = 10
WAIT_SECONDS = 20
LIST_RESULTS = 1000
MOVE_TASKS_LISTED = 10
MOVE_RATE = 500
MESSAGE_ATTRIBUTES = 10
TAGS = 50


class Compatibility(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between the two."""

    extensions: bool
    """Whether attributes named `Penstock.…` mean something."""
    delay_seconds: int
    visibility_seconds: int
    retention_seconds_min: int
    retention_seconds_max: int


STRICT = Compatibility(
    extensions=False,
    delay_seconds=900,
    visibility_seconds=43_200,
    retention_seconds_min=60,
    retention_seconds_max=1_209_600,
)
EXTENDED = Compatibility(
    extensions=True,
    delay_seconds=limits.RETENTION_MS_MAX // limits.SECOND_MS,
    visibility_seconds=limits.VISIBILITY_TIMEOUT_MS_MAX // limits.SECOND_MS,
    retention_seconds_min=limits.RETENTION_MS_MIN // limits.SECOND_MS,
    retention_seconds_max=limits.RETENTION_MS_MAX // limits.SECOND_MS,
)
