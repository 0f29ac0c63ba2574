"""The follower's side: how a replica handles the records of a primary."""

from __future__ import annotations

from typing import NamedTuple

from penstock.replication.primary_secondary.core.epochs import EpochHistory, last_common


class Refused(NamedTuple):
    """The sender is deposed: this replica knows a higher epoch."""

    epoch: int


class OutOfStep(NamedTuple):
    """The records do not follow the log here: the primary must find where the logs diverge."""

    last: int


class Ready(NamedTuple):
    """Records from `first` on may be appended; the earlier ones are here already."""

    first: int


Judgement = Refused | OutOfStep | Ready


class Secondary:
    """The state of a replica that follows. `known_epoch` is the highest epoch that it knows."""

    def __init__(self, epochs: EpochHistory, last: int, known_epoch: int) -> None:
        self.epochs = epochs
        self.last = last
        self.known_epoch = max(known_epoch, epochs.last)

    def judge(self, epoch: int, previous: int, previous_epoch: int, count: int) -> Judgement:
        """Judges records (previous, previous + count] of a primary of `epoch`, whose record `previous` is of `previous_epoch`."""
        if epoch < self.known_epoch:
            return Refused(self.known_epoch)
        self.known_epoch = epoch
        if previous > self.last or self.epochs.at(previous) != previous_epoch:
            return OutOfStep(self.last)
        # Some of it may be here already, sent twice. If what is here is of this very epoch, it is the same.
        if previous < self.last and self.epochs.at(min(self.last, previous + count)) != epoch:
            return OutOfStep(self.last)
        return Ready(self.last + 1)


class Continue(NamedTuple):
    """The replica continues with the record after `previous`."""

    previous: int


class CutFirst(NamedTuple):
    """The replica has records that were never committed: it cuts its log to `last` and continues from there."""

    last: int


class SendWhole(NamedTuple):
    """The primary no longer has a record that both logs share: it sends the state and the living messages."""


Approach = Continue | CutFirst | SendWhole


def approach(
    ours: EpochHistory, our_last: int, oldest: int, theirs: EpochHistory, their_last: int
) -> Approach:
    """How a primary brings a replica up to date; `oldest` is the first record that it can still send."""
    if their_last == 0:
        return Continue(0) if oldest <= 1 else SendWhole()
    common = last_common(ours, our_last, theirs, their_last)
    if common == 0 or common + 1 < oldest:
        return SendWhole()
    return Continue(common) if common == their_last else CutFirst(common)
