"""What a consumer decides: how much credit a server has, and which leases are kept alive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.client_core.credit import Credit
from penstock.client_core.lease_keeping import LeaseKeeping


def test_credit_is_given_anew_when_half_of_it_is_used() -> None:
    credit = Credit(10)
    assert credit.opening() == 10
    credit.delivered(10)
    assert [credit.handed_out(1) for _ in range(6)] == [0, 0, 0, 0, 5, 0]


def test_a_new_connection_gets_credit_for_what_there_is_room_for() -> None:
    credit = Credit(10)
    credit.opening()
    credit.delivered(7)
    credit.left(2)
    credit.handed_out(2)
    assert credit.opening() == 5
    credit.delivered(5)
    assert credit.opening() == 1  # one at least, or nothing would ever come
    assert credit.handed_out(4) == 0


@given(st.integers(1, 50), st.lists(st.integers(1, 20), max_size=60))
def test_a_server_never_sends_more_ahead_than_it_was_allowed(most: int, sizes: list[int]) -> None:
    credit = Credit(most)
    allowed = credit.opening()
    for size in sizes:
        sent = min(size, allowed)
        allowed -= sent
        credit.delivered(sent)
        assert credit.buffered <= most
        taken = min(size, credit.buffered)
        credit.left(taken)
        allowed += credit.handed_out(taken)
        assert allowed + credit.buffered <= most
    credit.left(credit.buffered)
    assert 2 * (most - allowed) <= most + 1 or not sizes  # it never runs dry


def test_what_waited_longer_than_its_lease_is_not_handed_out() -> None:
    assert Credit(1, 2.0).is_over(10.0, 12.1)
    assert not Credit(1, 2.0).is_over(10.0, 12.0)
    assert not Credit(1).is_over(10.0, 99.0)


class Lease:
    def __init__(self, arrived: float, *, is_open: bool = True) -> None:
        self.arrived = arrived
        self.is_open = is_open

    def open_runs(self) -> object:
        return [(1, 1)] if self.is_open else []


def test_leases_are_extended_three_times_per_timeout_while_their_messages_are_open() -> None:
    keeping = LeaseKeeping(3_000)
    assert keeping.interval == 1.0
    assert keeping.begins()
    assert not keeping.begins()
    old, young, settled = Lease(0.0), Lease(0.9), Lease(0.0, is_open=False)
    assert keeping.beat([old, young, settled], 1.0) == ([old, young], [old])
    assert keeping.beat([old, young], 2.0) == ([old, young], [old, young])
    old.is_open = young.is_open = False
    assert keeping.beat([old, young], 3.0) == ([], [])
    assert keeping.begins()


def test_without_a_timeout_nothing_is_kept() -> None:
    assert not LeaseKeeping(0).begins()
