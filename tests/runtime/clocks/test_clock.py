"""The clock never steps back, never stands still, and follows the system's clock forward."""

from hypothesis import given
from hypothesis import strategies as some

from penstock.runtime.clocks.clock import WallClock

SECOND = 1_000_000_000


class Hands:
    """A wall clock and a monotonic one that a test moves."""

    def __init__(self) -> None:
        self.wall_ns = 1_700_000_000 * SECOND
        self.monotonic_ns = 5 * SECOND

    def clock(self) -> WallClock:
        return WallClock(lambda: self.wall_ns, lambda: self.monotonic_ns)

    def pass_time(self, nanoseconds: int) -> None:
        self.wall_ns += nanoseconds
        self.monotonic_ns += nanoseconds


def test_it_shows_the_wall_clock() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.pass_time(1_234_567_890)
    assert clock.now_ms() == 1_700_000_001_234


def test_a_step_forward_is_taken_over_at_once() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_ns += 3600 * SECOND
    assert clock.now_ms() == 1_700_003_600_000


def test_after_a_step_back_it_goes_on_slowly_until_the_wall_clock_has_caught_up() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_ns -= 10 * SECOND
    assert clock.now_ms() == 1_700_000_000_000
    hands.pass_time(10 * SECOND)
    assert clock.now_ms() == 1_700_000_009_000
    hands.pass_time(190 * SECOND)
    assert clock.now_ms() == 1_700_000_190_000  # the two agree again


@given(some.lists(some.tuples(some.integers(0, 10**10), some.integers(-(10**12), 10**12))))
def test_it_never_steps_back(moves: list[tuple[int, int]]) -> None:
    hands = Hands()
    clock = hands.clock()
    last_ms = clock.now_ms()
    for passed_ns, step_ns in moves:
        hands.pass_time(passed_ns)
        hands.wall_ns += step_ns
        now_ms = clock.now_ms()
        assert now_ms >= last_ms
        last_ms = now_ms


def test_it_begins_after_what_is_on_record() -> None:
    hands = Hands()
    clock = hands.clock()
    clock.begin_after(
        1_700_000_000_000 + 3_600_000
    )  # the system's clock was set back by an hour between two starts
    assert clock.now_ms() == 1_700_003_600_000
    hands.pass_time(10 * SECOND)
    assert clock.now_ms() == 1_700_003_609_000
    clock.begin_after(0)
    assert clock.now_ms() == 1_700_003_609_000
