"""The server's stamp, and when a stamped send may be answered.

The promise: if one send was acknowledged before another began, its stamp is smaller, on all servers. A stamp is not before
true time (it is at least `latest`), and no client learns it until true time is past it (the answer waits for `earliest` to
pass the stamp). A send that begins after that answer begins after the stamp, so the next stamp is greater. The wait is
twice the uncertainty and runs while the disk and the replicas write.

The last stamp is recorded. It keeps stamps of a partition rising when the clock goes back, when the clock is too coarse to
distinguish two sends, and on the next server that leads the partition.
"""

from __future__ import annotations

from penstock.ordering.clock_interval import ClockInterval


class CommitWait:
    """The stamps of one partition. `last_us` is the whole state: a snapshot contains it, records rebuild it.

    Deciding and applying are separate: `next_stamp` changes nothing; the stamp goes into the record of the send, and
    applying that record, here, after a restart and on every replica, calls `observe`.
    """

    __slots__ = ("last_us",)

    def __init__(self, last_us: int = 0) -> None:
        self.last_us = last_us

    def next_stamp(self, now: ClockInterval) -> int:
        """The stamp for a batch that is about to be recorded; its messages share it, in the order of the batch."""
        return max(now.latest_us, self.last_us + 1)

    def observe(self, stamp_us: int) -> None:
        """A record with this stamp was applied, or the partition promised to stamp nothing at or below it."""
        self.last_us = max(self.last_us, stamp_us)

    def ahead_us(self, now: ClockInterval) -> int:
        """How far the last stamp is ahead of the latest that true time may be.

        More than twice the allowed uncertainty means that the clock, here or on the server before, broke its bounds:
        answers would wait so long, and it is kinder to refuse sends and say why.
        """
        return max(0, self.last_us - now.latest_us)

    def closable_us(self, now: ClockInterval) -> int:
        """The time that the partition may close: no stamp will be at or below it. Call `observe` with it when the promise is
        recorded.

        It is certainly in the past, so the promise does not delay later sends.
        """
        return now.earliest_us - 1


def may_answer(stamp_us: int, now: ClockInterval) -> bool:
    """Whether the stamp is certainly in the past. The record must be committed too; neither waits for the other."""
    return now.earliest_us > stamp_us


def answerable_us(now: ClockInterval) -> int:
    """Every committed stamp up to this one may be answered: stamps rise with the journal, so one number is enough."""
    return now.earliest_us - 1


def wait_us(stamp_us: int, now: ClockInterval) -> int:
    """How long the answer has to wait still, if the interval grows no wider."""
    return max(0, stamp_us + 1 - now.earliest_us)
