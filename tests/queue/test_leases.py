"""Leases: parts, extensions, ends, and a heap that does not fill up with what is over."""

from __future__ import annotations

from penstock.queue.state.leases import LeaseTable


def table_of(*leases: tuple[int, int]) -> LeaseTable:
    """Leases 1, 2, … of 10 messages each, from (at, until)."""
    table = LeaseTable()
    for number, (at_ms, until_ms) in enumerate(leases, 1):
        table.add(number, [(number * 100, 10)], at_ms, until_ms)
    return table


def test_a_lease_ends_when_it_says() -> None:
    table = table_of((0, 50), (0, 30))
    assert table.next == 3
    assert table.next_ms() == 30
    assert table.due(29, 10, 100) == []
    assert table.due(30, 10, 100) == [(2, [(200, 10)])]
    assert table.due(100, 10, 100) == [(2, [(200, 10)]), (1, [(100, 10)])]
    assert table.due(100, 1, 100) == [(2, [(200, 10)])]


def test_what_is_due_stays_due_until_it_is_removed() -> None:
    table = table_of((0, 30))
    assert table.due(30, 10, 100) == table.due(30, 10, 100) != []
    table.remove(1, [(100, 10)])
    assert table.due(30, 10, 100) == []
    assert table.next_ms() is None


def test_a_partial_removal_splits_a_lease() -> None:
    table = table_of((0, 30))
    table.remove(1, [(103, 2), (108, 50)])
    lease = table.get(1)
    assert lease is not None
    assert lease.runs() == [(100, 3), (105, 3)]
    table.remove(1, [(100, 10)])
    assert table.get(1) is None
    table.remove(1, [(100, 10)])


def test_a_partial_extension_gives_a_lease_two_ends() -> None:
    table = table_of((0, 30))
    table.extend(1, [(102, 3)], 80)
    lease = table.get(1)
    assert lease is not None
    assert lease.runs() == [(100, 10)]
    assert table.due(79, 10, 100) == [(1, [(100, 2), (105, 5)])]
    table.remove(1, [(100, 2), (105, 5)])
    assert table.next_ms() == 80
    assert table.due(80, 10, 100) == [(1, [(102, 3)])]


def test_extensions_to_the_same_end_join() -> None:
    table = table_of((0, 30))
    for first in range(100, 110):
        table.extend(1, [(first, 1)], 80)
    lease = table.get(1)
    assert lease is not None
    assert lease.parts == [(80, [(100, 10)])]


def test_an_extension_may_shorten() -> None:
    table = table_of((0, 30))
    table.extend(1, [(100, 10)], 10)
    assert table.next_ms() == 10
    assert table.due(10, 10, 100) == [(1, [(100, 10)])]


def test_an_extended_lease_is_not_due_at_its_old_end() -> None:
    table = table_of((0, 30))
    table.extend(1, [(100, 10)], 90)
    assert table.next_ms() == 90
    assert table.due(89, 10, 100) == []


def test_messages_leave_whichever_leases_hold_them() -> None:
    table = table_of((0, 30), (0, 30), (0, 30))
    table.remove_from([(1, (105, 3)), (2, (200, 4)), (2, (204, 6)), (3, (309, 1)), (4, (400, 1))])
    assert {number: lease.runs() for number, lease in table} == {
        1: [(100, 5), (108, 2)],
        3: [(300, 9)],
    }


def test_leases_that_are_over_do_not_fill_the_heap() -> None:
    """A visibility timeout of a year, and a million receives a day, each deleted at once."""
    table = LeaseTable()
    for number in range(1, 30_000):
        table.add(number, [(number, 1)], 0, 10**10 + number)
        table.remove(number, [(number, 1)])
    assert len(table._ends) <= 4_096


def test_heartbeats_do_not_fill_the_heap() -> None:
    table = table_of((0, 10**10))
    for beat in range(30_000):
        table.extend(1, [(100, 10)], 10**10 + beat)
    assert len(table._ends) <= 4_096
    assert table.next_ms() == 10**10 + 29_999


def test_leases_survive_a_snapshot() -> None:
    table = table_of((0, 50), (5, 30))
    table.extend(1, [(102, 3)], 80)
    copy = LeaseTable()
    copy.load((number, lease.at_ms, lease.parts) for number, lease in table)
    assert [(number, lease.parts) for number, lease in copy] == [(n, lease.parts) for n, lease in table]
    assert copy.due(100, 10, 100) == table.due(100, 10, 100)
    assert copy.next_ms() == 30
