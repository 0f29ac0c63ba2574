"""The budget of a receive: messages and bytes, and at least one message."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as some

from penstock.queue.decisions.budget import Budget


def sizes(*values: int) -> array[int]:
    return array("I", values)


def test_the_first_message_always_fits() -> None:
    budget = Budget(10, 5)
    assert budget.take(sizes(100, 1)) == 1
    assert budget.spent()
    one_at_a_time = Budget(10, 5)
    assert one_at_a_time.take_one(100)
    assert one_at_a_time.spent()


def test_what_does_not_fit_ends_the_receive() -> None:
    budget = Budget(10, 50)
    assert budget.take(sizes(20, 40, 1)) == 1
    assert budget.spent(), "the third would fit, but must not overtake the second"
    budget = Budget(10, 50)
    assert budget.take_one(20)
    assert not budget.take_one(40)
    assert budget.spent()


def test_no_more_than_asked_for() -> None:
    budget = Budget(2, 50)
    assert budget.take(sizes(1, 1, 1)) == 2
    assert budget.spent()


@given(some.lists(some.integers(0, 30), min_size=1), some.integers(1, 12), some.integers(0, 100))
def test_many_at_once_and_one_at_a_time_agree(values: list[int], messages: int, size: int) -> None:
    together, single = Budget(messages, size), Budget(messages, size)
    count = together.take(sizes(*values))
    taken = 0
    for value in values:
        if single.spent() or not single.take_one(value):
            break
        taken += 1
    # Messages without a body may follow the last byte: many at once takes them, one at a time need not.
    assert taken <= count
    assert all(value == 0 for value in values[taken:count])
    assert sum(values[:count]) <= size or count == 1
    assert 1 <= count <= messages
