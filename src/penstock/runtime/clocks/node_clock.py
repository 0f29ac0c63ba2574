"""The node's clock: its own timeline, or chrony or ClockBound, which are read in the background.

The node asks for the interval of true time as often as it likes; that reads two clocks and never waits. A separate thread
reads the host's daemon once a second; in between the bounds diverge at the configured drift.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Literal

from penstock.ordering.clock_estimator import DRIFT_PPM, ClockEstimator, Exchange
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.local_clock import LocalClock
from penstock.ordering.own_timeline import OwnTimeline
from penstock.runtime.clocks.chrony import Chrony
from penstock.runtime.clocks.clockbound import ClockBound
from penstock.runtime.clocks.host_clock import LOCAL_CLOCK, HostClock, HostClockError

logger = logging.getLogger(__name__)

ClockSource = Literal["auto", "own", "chrony", "clockbound"]
REFRESH_SECONDS = 1.0
JOIN_SECONDS = 2.0


class NodeClock:
    """The node's knowledge of true time; only the event loop's thread may call `interval`."""

    def __init__(
        self,
        host: HostClock | None,
        drift_ppm: int = DRIFT_PPM,
        local: LocalClock = LOCAL_CLOCK,
        refresh_seconds: float = REFRESH_SECONDS,
    ) -> None:
        self._host = host
        self._refresh_seconds = refresh_seconds
        self._local = local
        self.drift_ppm = drift_ppm
        """How fast this computer's clock may run wrong at most."""
        self._own = OwnTimeline(local.wall_us(), local.reading_us())
        self._estimator = ClockEstimator(drift_ppm)
        self._arrived: deque[Exchange] = deque(maxlen=16)
        self._watch: _Watch | None = None
        self._contradictions = 0

    @property
    def source(self) -> str:
        """The source of the time: `own`, `chrony` or `clockbound`."""
        return "own" if self._host is None else self._host.name

    def begin_after(self, last_us: int) -> None:
        """Time has not been before this: it is the last stamp on record."""
        local = self._local
        self._own = OwnTimeline(local.wall_us(), local.reading_us(), last_us)

    def start(self) -> None:
        """Asks the host's daemon from now on."""
        if self._host is not None and self._watch is None:
            self._watch = _Watch(self._host, self._arrived, self._refresh_seconds)

    def close(self) -> None:
        """Stops reading."""
        if self._watch is not None:
            self._watch.stop()

    def learn(self, exchange: Exchange) -> None:
        """The host's daemon has returned the time."""
        self._arrived.append(exchange)

    def interval(self) -> ClockInterval | None:
        """True time by now; None while it is not known."""
        local = self._local
        if self._host is None:
            return self._own.interval(local.wall_us(), local.reading_us())
        while self._arrived:
            self._estimator.learn(self._arrived.popleft(), self._host.name)
        if self._estimator.contradictions > self._contradictions:
            self._contradictions = self._estimator.contradictions
            logger.warning(
                "%(source)s contradicts its earlier time: a clock of this computer was stepped, or its "
                "rate is wrong by more than clock.drift_ppm (%(drift_ppm)d). The time is less certain "
                "until they agree again",
                {"source": self._host.name, "drift_ppm": self.drift_ppm},
            )
        return self._estimator.interval(local.reading_us())


class _Watch:
    """The thread that reads."""

    def __init__(self, host: HostClock, arrived: deque[Exchange], refresh_seconds: float) -> None:
        self._host = host
        self._refresh_seconds = refresh_seconds
        self._arrived = arrived
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-clock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        silent = False
        state = "is not known"
        while not self._stopped.is_set():
            try:
                self._arrived.append(self._host.read())
                state = "grows uncertain"
                if silent:
                    logger.info("using the time source %(source)s", {"source": self._host.name})
                silent = False
            except HostClockError as error:
                if not silent:
                    logger.warning("the time %(state)s: %(error)s", {"state": state, "error": error})
                silent = True
            self._stopped.wait(self._refresh_seconds)


def open_clock(source: ClockSource, drift_ppm: int = DRIFT_PPM) -> NodeClock:
    """The clock that a setting names; `auto` uses ClockBound or chrony if they know the time now.

    If a named daemon does not answer yet, the clock does not know the time until it does.
    """
    candidates: dict[str, HostClock] = {"clockbound": ClockBound(), "chrony": Chrony()}
    if source == "auto":
        return choose_clock(list(candidates.values()), drift_ppm)
    return NodeClock(candidates.get(source), drift_ppm)


def choose_clock(candidates: list[HostClock], drift_ppm: int = DRIFT_PPM) -> NodeClock:
    """The first that knows the time, else the node's own."""
    for host in candidates:
        try:
            exchange = host.read()
        except HostClockError as error:
            logger.debug(
                "time source %(source)s is not used: %(error)s", {"source": host.name, "error": error}
            )
            continue
        clock = NodeClock(host, drift_ppm)
        clock.learn(exchange)
        return clock
    return NodeClock(None, drift_ppm)
