"""The node's clock: its own timeline or a daemon's bounds, never going back, never waiting."""

from __future__ import annotations

import threading

from penstock.ordering.clock_estimator import Exchange, host_reading
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.local_clock import LocalClock
from penstock.runtime.clocks.host_clock import LOCAL_CLOCK, HostClockError
from penstock.runtime.clocks.node_clock import NodeClock, choose_clock, open_clock

START_US = 1_700_000_000_000_000


class Hands:
    """Clocks that show what a test says."""

    def __init__(self) -> None:
        self.wall_us = START_US
        self.reading_us = 1_000

    @property
    def clock(self) -> LocalClock:
        return LocalClock(lambda: self.wall_us, lambda: self.reading_us)

    def pass_us(self, elapsed_us: int) -> None:
        self.wall_us += elapsed_us
        self.reading_us += elapsed_us


class Daemon:
    """A daemon that says what a test says, and tells when it was asked."""

    def __init__(self, hands: Hands, error_us: int | None = None, name: str = "chrony") -> None:
        self.name = name
        self.error_us = error_us
        self.asked = threading.Semaphore(0)
        self._hands = hands

    def read(self) -> Exchange:
        try:
            if self.error_us is None:
                raise HostClockError("it does not know")
            at_us = self._hands.reading_us
            return host_reading(at_us, around(self._hands.wall_us, self.error_us), at_us)
        finally:
            self.asked.release()


def test_a_node_alone_defines_the_time() -> None:
    hands = Hands()
    clock = NodeClock(None, local=hands.clock)
    assert clock.source == "own"
    assert clock.interval() == (START_US, START_US)
    hands.pass_us(500)
    assert clock.interval() == (START_US + 500, START_US + 500)


def test_time_begins_after_the_last_stamp_on_record_and_does_not_go_back_with_the_wall_clock() -> None:
    hands = Hands()
    clock = NodeClock(None, local=hands.clock)
    clock.begin_after(START_US + 3_000_000)
    assert clock.interval() == (START_US + 3_000_001, START_US + 3_000_001)
    hands.wall_us -= 3_600_000_000
    hands.reading_us += 100
    known = clock.interval()
    assert known is not None
    assert known.earliest_us > START_US + 3_000_001


def test_a_daemons_bound_is_the_nodes_and_grows_with_the_drift() -> None:
    hands = Hands()
    daemon = Daemon(hands, error_us=300)
    clock = NodeClock(daemon, drift_ppm=100, local=hands.clock)
    assert clock.source == "chrony"
    assert clock.interval() is None
    clock.learn(daemon.read())
    known = clock.interval()
    assert known is not None
    assert 300 <= known.uncertainty_us <= 303
    hands.pass_us(10_000_000)
    later = clock.interval()
    assert later is not None
    assert later.holds(hands.wall_us)
    assert 1_300 <= later.uncertainty_us <= 1_305
    daemon.error_us = 200
    clock.learn(daemon.read())
    better = clock.interval()
    assert better is not None
    assert better.uncertainty_us <= 203


def test_a_daemon_is_asked_in_the_background_and_one_that_fails_is_asked_again() -> None:
    hands = Hands()
    daemon = Daemon(hands, error_us=300)
    clock = NodeClock(daemon, local=hands.clock, refresh_seconds=0.001)
    clock.start()
    try:
        assert daemon.asked.acquire(timeout=100)
        daemon.error_us = None
        assert daemon.asked.acquire(timeout=100)
        daemon.error_us = 100
        assert daemon.asked.acquire(timeout=100)
    finally:
        clock.close()
    known = clock.interval()
    assert known is not None
    assert known.uncertainty_us <= 303


def test_auto_takes_the_first_daemon_that_knows_the_time_else_none() -> None:
    hands = Hands()
    silent, knowing = Daemon(hands, name="clockbound"), Daemon(hands, 100)
    chosen = choose_clock([silent, knowing])
    assert chosen.source == "chrony"
    assert choose_clock([silent]).source == "own"
    assert choose_clock([]).source == "own"


def test_a_clock_that_is_named_is_used_though_it_does_not_answer() -> None:
    assert open_clock("chrony").source == "chrony"
    assert open_clock("clockbound").source == "clockbound"
    own = open_clock("own", 50)
    assert (own.source, own.drift_ppm) == ("own", 50)
    known = own.interval()
    assert isinstance(known, ClockInterval)
    assert abs(known.middle_us - LOCAL_CLOCK.wall_us()) < 60_000_000
