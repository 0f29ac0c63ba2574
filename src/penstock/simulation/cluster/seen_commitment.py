"""Sees every acknowledgement: what the model of a node calls committed when an answer is about to leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.replication.interface import Commitment, Need


class SeenCommitment:
    """Wraps a model's `Commitment`."""

    def __init__(self, real: Commitment, seen: Callable[[Need], None]) -> None:
        self._real = real
        self._seen = seen

    def needs(self, about: int | Sequence[int], *, served_only: bool) -> Sequence[Need]:
        """See `Commitment`."""
        return self._real.needs(about, served_only=served_only)

    def is_committed(self, need: Need) -> bool | None:
        """See `Commitment`; reports what is committed."""
        state = self._real.is_committed(need)
        if state:
            self._seen(need)
        return state

    def has_copies(self, need: Need) -> bool:
        """See `Commitment`."""
        return self._real.has_copies(need)
