"""A token bucket: fills at a rate up to its burst; passing requests empty it. Time is an argument."""

from __future__ import annotations

from penstock.metadata.request_limits import RequestLimit


class TokenBucket:
    """Begins full."""

    __slots__ = ("_at_ms", "_tokens", "limit")

    def __init__(self, limit: RequestLimit, now_ms: int) -> None:
        self.limit = limit
        self._tokens = float(limit.burst)
        self._at_ms = now_ms

    def change(self, limit: RequestLimit, now_ms: int) -> None:
        """Continues under another limit with the remaining tokens, so that a change gives no new burst."""
        self._fill(now_ms)
        self.limit = limit
        self._tokens = min(self._tokens, float(limit.burst))

    def has(self, cost: int, now_ms: int) -> bool:
        """Whether so much may pass now. A cost above the burst passes a full bucket, and leaves a debt."""
        self._fill(now_ms)
        return self.limit.rate > 0 and self._tokens >= min(cost, self.limit.burst)

    def take(self, cost: int) -> None:
        """It has passed."""
        self._tokens -= cost

    def owe(self, cost: int, now_ms: int) -> None:
        """It has passed whether there was enough or not; never more is owed than a burst."""
        self._fill(now_ms)
        self._tokens = min(self._tokens, max(self._tokens - cost, -float(self.limit.burst)))

    def is_full(self, now_ms: int) -> bool:
        """Whether it says nothing that a new one would not."""
        self._fill(now_ms)
        return self._tokens >= self.limit.burst

    def _fill(self, now_ms: int) -> None:
        elapsed_ms = now_ms - self._at_ms
        self._at_ms = now_ms  # a clock that was set back gives nothing, and does not stop the filling either
        if elapsed_ms > 0:
            filled = self._tokens + elapsed_ms * self.limit.rate / 1000
            self._tokens = min(filled, float(self.limit.burst))
