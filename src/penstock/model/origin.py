"""The origin of moved messages: their source queue, the reason, their lateness, and their permanent identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from penstock.model.runs import Runs, runs_in_order

Reason = Literal["max-receives", "expired", "overflow", "queue-deleted", "redrive", "late"]


class Lateness(msgspec.Struct, frozen=True, array_like=True):
    """How late messages of a batch were: behind a watermark, the time up to which messages had left already."""

    floor_us: int
    """A message's own lateness is this less its stamp."""
    window_needed_us: int | None
    """The window that would have been wide enough for the oldest of them; None: unknown."""
    precedes: str | None
    """The id that the oldest of them should have preceded, as text; None: none is known."""


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """The origin of moved messages, and the reason; one for each `Sent` of a move."""

    source_id: int
    source: str
    reason: Reason
    runs: Runs
    """Sequence numbers in the source, in the order of the batch."""
    sent_ms: int
    receive_counts: list[int]
    moved_ms: int
    roots: list[tuple[int, int]] | None = None
    """(queue id, sequence number) of each message's first queue, in the order of the batch; None: the source is it.

    Every later move passes this on, so that a message has one identity as long as it lives.
    """
    late: Lateness | None = None
    """With reason `late`."""

    def part(self, places: Sequence[int]) -> Origin:
        """The origin of some messages of the batch, by their places in it, in rising order."""
        sequences = [sequence for first, count in self.runs for sequence in range(first, first + count)]
        return Origin(
            self.source_id,
            self.source,
            self.reason,
            runs_in_order(sequences[place] for place in places),
            self.sent_ms,
            [self.receive_counts[place] for place in places],
            self.moved_ms,
            None if self.roots is None else [self.roots[place] for place in places],
            self.late,
        )

    def first_homes(self) -> list[tuple[int, int]]:
        """(queue id, sequence number) of each message's first home, in the order of the batch."""
        if self.roots is not None:
            return self.roots
        return [(self.source_id, s) for first, count in self.runs for s in range(first, first + count)]
