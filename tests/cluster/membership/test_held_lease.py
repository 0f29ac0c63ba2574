"""A node stops counting on its lease before the store takes it for ended, whatever is done to the system's clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from penstock.cluster.membership.held_lease import counted_on_ms
from penstock.cluster.membership.node_lease import LEASE_MS, RENEW_MS
from penstock.runtime.clocks.clock import WallClock

OSCILLATORS_PERCENT = 10
"""What may be left of the lease in any case, for clocks that differ."""


@given(
    some.lists(
        some.tuples(some.integers(0, 400), some.sampled_from((0, 0, -3_600_000, -500, 300))), min_size=1
    )
)
def test_the_lease_has_not_ended_while_the_node_counts_on_it(steps: list[tuple[int, int]]) -> None:
    """(milliseconds that pass, by how many the system's clock is set after that)."""
    wall_ns, monotonic_ns = 1_700_000_000_000_000_000, 5_000_000_000
    clock = WallClock(lambda: wall_ns, lambda: monotonic_ns)
    began_ms, passed_ms = clock.now_ms(), 0
    for pause_ms, step_ms in [*steps, *[(10, 0)] * 400]:
        passed_ms += pause_ms
        monotonic_ns += pause_ms * 1_000_000
        wall_ns += (pause_ms + step_ms) * 1_000_000
        if clock.now_ms() >= began_ms + counted_on_ms(LEASE_MS):
            return
        assert passed_ms < LEASE_MS * (100 - OSCILLATORS_PERCENT) // 100
    raise AssertionError("it counts on it for ever")


def test_a_lease_is_renewed_twice_before_the_node_stops() -> None:
    """One renewal that is lost, or slow, deposes no primary."""
    assert counted_on_ms(LEASE_MS) >= 3 * RENEW_MS
