"""Keeps an interval of true time from exchanges with clocks that know it, as NTP does, with bounds instead of estimates.

The rule, which needs no symmetric network: the answer left the server before it came back, so true time is at least what
the server knew then; the question left before the server saw it, so true time is at most what the server knew then and the
whole round trip. Between exchanges the bounds move with the local monotonic clock and diverge at the stated drift. As long
as that clock keeps to its drift and servers to their bounds, true time is always inside.

If it does not (a suspended machine, a frozen or stepped clock), the next exchange usually contradicts the old bounds:
until another one confirms it, the interval includes both. An error too small to be noticed is forgotten with the exchanges
of its time, of which a source keeps eight.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, NamedTuple

from penstock.ordering.clock_interval import ClockInterval

DRIFT_PPM = 200
"""The assumed sum of a computer's oscillator error and a node's own correction; TrueTime assumes the same."""
EXCHANGES_KEPT = 8
GRANULARITY_US = 1

Learned = Literal["agreed", "contradicted", "rejected"]


class Exchange(NamedTuple):
    """A question and its answer: two readings of the local monotonic clock around two intervals of true time."""

    sent_us: int
    received: ClockInterval
    """The server's interval when it saw the question."""
    answered: ClockInterval
    """The server's interval when it answered."""
    returned_us: int


def host_reading(before_us: int, known: ClockInterval, after_us: int) -> Exchange:
    """The host's own disciplined clock (chrony, ClockBound) is a server too, one that answers in no time.

    The monotonic clock is read before and after, for the process may be interrupted in between.
    """
    return Exchange(before_us, known, known, after_us)


class _Sample(NamedTuple):
    """True time when the local clock showed `at_us`."""

    at_us: int
    known: ClockInterval


class _Drift(NamedTuple):
    """While the local clock advances by `d`, true time advances by `d` and at most `ppm` millionths of `d` more or less."""

    ppm: int
    granularity_us: int

    def longest_us(self, elapsed_us: int) -> int:
        return -(-(elapsed_us + self.granularity_us) * (1_000_000 + self.ppm) // 1_000_000)

    def shortest_us(self, elapsed_us: int) -> int:
        return max(0, elapsed_us - self.granularity_us) * (1_000_000 - self.ppm) // 1_000_000

    def moved(self, sample: _Sample, now_us: int) -> ClockInterval:
        elapsed_us = now_us - sample.at_us
        earliest_us, latest_us = sample.known
        if elapsed_us > 0:
            earliest_us += self.shortest_us(elapsed_us)
        else:  # taken before the answer came, or in the same tick; the order is unknown
            earliest_us -= self.longest_us(-elapsed_us)
        if elapsed_us >= 0:
            latest_us += self.longest_us(elapsed_us)
        else:
            latest_us -= self.shortest_us(-elapsed_us)
        return ClockInterval(earliest_us, latest_us)


class _Source:
    """The bounds from the last exchanges with one server."""

    __slots__ = ("_doubt", "_drift", "_earliest", "_latest", "_samples")

    def __init__(self, drift: _Drift, first: _Sample) -> None:
        self._drift = drift
        self._samples = deque([first], maxlen=EXCHANGES_KEPT)
        self._earliest = self._latest = first
        self._doubt: _Sample | None = None

    def learn(self, sample: _Sample) -> Learned:
        at_us = sample.at_us
        if contradicted := sample.known.contradicts(self._agreed(at_us)):
            self._doubt = _Sample(at_us, self.at(at_us))
            self._samples.clear()
        else:
            self._doubt = None
        self._samples.append(sample)
        # Lower bounds all move at one rate, and so do upper bounds: which is best now is so for as long as it is kept.
        later_us = max(kept.at_us for kept in self._samples) + self._drift.granularity_us + 1
        moved = [(self._drift.moved(kept, later_us), kept) for kept in self._samples]
        self._earliest = max(moved, key=lambda pair: pair[0].earliest_us)[1]
        self._latest = min(moved, key=lambda pair: pair[0].latest_us)[1]
        return "contradicted" if contradicted else "agreed"

    def at(self, now_us: int) -> ClockInterval:
        known = self._agreed(now_us)
        return known if self._doubt is None else known.hull(self._drift.moved(self._doubt, now_us))

    def _agreed(self, now_us: int) -> ClockInterval:
        earliest_us = self._drift.moved(self._earliest, now_us).earliest_us
        latest_us = self._drift.moved(self._latest, now_us).latest_us
        # Bounds of a broken clock that only just touch may be rounded past each other.
        return ClockInterval(min(earliest_us, latest_us), max(earliest_us, latest_us))


class ClockEstimator:
    """The interval of true time of one process, by its local monotonic clock.

    Readings for which the interval is requested come in the order in which they were taken, and never from before a
    question that is answered already; exchanges may be added at any time.

    The local clock should be one that no program corrects (CLOCK_MONOTONIC_RAW): corrections of CLOCK_MONOTONIC may exceed
    any drift.
    """

    def __init__(self, drift_ppm: int = DRIFT_PPM, granularity_us: int = GRANULARITY_US) -> None:
        self._drift = _Drift(drift_ppm, granularity_us)
        self._sources: dict[str, _Source] = {}
        self._newest_us = self._since_us = -(2**63)
        self.contradictions = 0
        """Exchanges that contradicted the ones before: some clock broke its bounds."""
        self.breaks = 0
        """How often the local clock went back, which made everything known worthless."""

    def learn(self, exchange: Exchange, source: str = "server") -> Learned:
        """Takes an exchange in, and says what it did to what was known."""
        sent_us, received, answered, returned_us = exchange
        if returned_us < sent_us or sent_us < self._since_us:
            return "rejected"  # the local clock broke while the exchange was under way
        self._newest_us = max(sent_us, self._newest_us)
        latest_us = received.latest_us + self._drift.longest_us(returned_us - sent_us)
        if answered.earliest_us > latest_us:
            self.contradictions += 1
            return "rejected"  # the server was at it for longer than the whole round trip took
        sample = _Sample(returned_us, ClockInterval(answered.earliest_us, latest_us))
        known = self._sources.get(source)
        if known is None:
            self._sources[source] = _Source(self._drift, sample)
            return "agreed"
        learned = known.learn(sample)
        self.contradictions += learned == "contradicted"
        return learned

    def forget(self, source: str) -> None:
        """The source is not asked any more; its bounds would only grow old."""
        self._sources.pop(source, None)

    def interval(self, now_us: int) -> ClockInterval | None:
        """True time when the local clock shows `now_us`, or None if it is unknown.

        The interval that all sources allow; if they contradict each other, the one that any of them allows.
        """
        self._pass(now_us)
        known = [source.at(now_us) for source in self._sources.values()]
        if len(known) < 2:
            return known[0] if known else None
        allowed = ClockInterval(max(k.earliest_us for k in known), min(k.latest_us for k in known))
        if allowed.earliest_us > allowed.latest_us:
            return ClockInterval(min(k.earliest_us for k in known), max(k.latest_us for k in known))
        return allowed

    def sources_contradict(self, now_us: int) -> bool:
        """Whether two sources cannot both be right, which an operator should know."""
        self._pass(now_us)
        known = [source.at(now_us) for source in self._sources.values()]
        return bool(known) and max(k.earliest_us for k in known) > min(k.latest_us for k in known)

    def _pass(self, now_us: int) -> None:
        if now_us < self._newest_us:
            self._sources.clear()
            self._since_us = now_us
            self.breaks += 1
        self._newest_us = now_us
