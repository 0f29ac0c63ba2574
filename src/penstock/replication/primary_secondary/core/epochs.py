"""Which epoch wrote which records of a partition's log, and where two logs diverge.

Only one primary writes in an epoch. So if two logs have the same epoch at an index, they have the same record there and
the same records before it. A few pairs of numbers are therefore enough to compare logs of any length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

EPOCHS_REMEMBERED = 1_000
"""Only the newest are kept; a replica that diverged before those gets a whole state."""


class EpochHistory:
    """(epoch, index of its first record), both rising."""

    def __init__(self, begun: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._firsts: list[int] = []
        for epoch, first in begun:
            self.begin(epoch, first)

    @property
    def last(self) -> int:
        """The newest epoch; 0 where none has begun."""
        return self._epochs[-1] if self._epochs else 0

    def begin(self, epoch: int, first: int) -> None:
        """A primary wrote its first record."""
        if self._epochs and (epoch <= self._epochs[-1] or first <= self._firsts[-1]):
            raise ValueError(
                f"epoch {epoch} from {first} does not follow epoch {self._epochs[-1]} from {self._firsts[-1]}"
            )
        self._epochs.append(epoch)
        self._firsts.append(first)
        if len(self._epochs) > EPOCHS_REMEMBERED:
            del self._epochs[0], self._firsts[0]

    def at(self, index: int) -> int:
        """The epoch that wrote a record; 0 for those before the first that is remembered."""
        place = bisect_right(self._firsts, index)
        return self._epochs[place - 1] if place else 0

    def first_after(self, epoch: int) -> int | None:
        """The first record of any epoch after this one; None: there is no such epoch."""
        place = bisect_right(self._epochs, epoch)
        return self._firsts[place] if place < len(self._firsts) else None

    def pairs(self) -> list[tuple[int, int]]:
        """For the wire and the snapshot."""
        return list(zip(self._epochs, self._firsts, strict=True))


def last_common(ours: EpochHistory, our_last: int, theirs: EpochHistory, their_last: int) -> int:
    """The last index at which both logs have the same record; 0 where none is known to be."""
    index = min(our_last, their_last)
    while index > 0:
        epoch = ours.at(index)
        if epoch == theirs.at(index):
            return index if epoch else 0
        # Both are in other epochs here, so they part where the later of the two begins, or earlier.
        index = max(_begin(ours, index), _begin(theirs, index)) - 1
    return 0


def _begin(history: EpochHistory, index: int) -> int:
    """The first record of the epoch that wrote `index`."""
    epoch = history.at(index)
    return next((first for known, first in history.pairs() if known == epoch), 1)
