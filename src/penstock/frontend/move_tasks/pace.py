"""How many messages a move task may move now: a token bucket with a capacity of a tenth of a second."""

from __future__ import annotations

from penstock.model import limits
from penstock.model.limits import SECOND_MS

SLICE_MS = 100


class Pace:
    """The first message moves at once, the others as the rate allows. Without a rate, a full slice each time."""

    def __init__(self, messages_per_second: int | None, now_ms: int) -> None:
        self._rate = messages_per_second
        self._tokens = 1.0
        self._counted_ms = now_ms

    def allowed(self, now_ms: int) -> int:
        """How many may move now."""
        if self._rate is None:
            return limits.MOVE_MESSAGES
        most = max(1.0, self._rate * SLICE_MS / SECOND_MS)
        passed_ms = max(0, now_ms - self._counted_ms)
        self._tokens = min(most, self._tokens + passed_ms * self._rate / SECOND_MS)
        self._counted_ms = max(now_ms, self._counted_ms)
        return int(self._tokens + 1e-9)

    def took(self, messages: int) -> None:
        """So many have moved."""
        if self._rate is not None:
            self._tokens -= messages

    def next_ms(self, now_ms: int) -> int:
        """When to move again."""
        if self._rate is None:
            return now_ms
        if self._tokens >= 1:
            return now_ms  # the examined messages could not move, so the turn is not used up
        wait_ms = -int(-(1 - self._tokens) * SECOND_MS // self._rate)
        return now_ms + max(wait_ms, SLICE_MS)
