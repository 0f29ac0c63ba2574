"""Priorities are served by weight, and the lowest never starves."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from penstock.model.batch import encode
from penstock.model.limits import PRIORITIES, PRIORITY_WEIGHTS
from tests.queue.rig import START_MS, Rig, expand

SHARES = [weight / sum(PRIORITY_WEIGHTS) for weight in PRIORITY_WEIGHTS]


def send(rig: Rig, priorities: list[int], size: int = 1) -> list[int]:
    return expand(rig.send(encode([bytes(size)] * len(priorities), priorities=priorities)).runs)


def served(rig: Rig, max_messages: int, receives: int) -> list[int]:
    """The priorities of what is received, in order."""
    sequences = [s for _ in range(receives) for s in rig.take(max_messages)]
    return [(sequence - 1) % PRIORITIES for sequence in sequences]


@pytest.mark.parametrize("max_messages", [1, 3, 10, 100])
def test_service_follows_the_weights(max_messages: int) -> None:
    """As long as all priorities wait, each is served in proportion to its weight."""
    rig = Rig()
    for _ in range(10):
        send(rig, list(range(PRIORITIES)) * 300)
    counts = Counter(served(rig, max_messages, 2_000 // max_messages))
    for priority, share in enumerate(SHARES):
        assert counts[priority] == pytest.approx(2_000 * share, abs=max(4, 2_000 * share * 0.05))


def test_the_lowest_priority_is_served_within_a_round_one_message_at_a_time() -> None:
    rig = Rig()
    for _ in range(10):
        send(rig, list(range(PRIORITIES)) * 200)
    order = served(rig, 1, 5 * sum(PRIORITY_WEIGHTS))
    positions = [index for index, priority in enumerate(order) if priority == 0]
    gaps = [b - a for a, b in zip([0, *positions], positions, strict=False)]
    assert max(gaps) <= 2 * sum(PRIORITY_WEIGHTS)
    assert len(positions) >= 4


def test_two_priorities_alone_share_by_their_weights() -> None:
    rig = Rig()
    send(rig, [0, 9] * 2_000)
    counts = Counter((s - 1) % 2 for _ in range(990) for s in rig.take(1))
    assert counts[0] == pytest.approx(990 / 33, abs=2)


def test_higher_priorities_come_first_in_an_answer_and_order_holds_inside_each() -> None:
    rig = Rig()
    sent = send(rig, [0, 5, 9, 5, 0, 9])
    assert rig.take(6) == [sent[i] for i in (2, 5, 1, 3, 0, 4)]


def test_a_full_answer_is_given_whatever_the_weights() -> None:
    rig = Rig()
    send(rig, [0] * 95 + [9] * 5)
    assert len(rig.take(100)) == 100


def test_plain_messages_are_priority_zero() -> None:
    rig = Rig()
    plain = rig.send_plain(3)
    high = send(rig, [1, 1])
    assert rig.take(10) == [*high, *plain]


def test_a_priority_that_appears_late_is_served_at_once_and_does_not_catch_up() -> None:
    rig = Rig()
    send(rig, [5] * 3_000)
    for _ in range(100):
        rig.take(10)
    late = send(rig, [9] * 1_000)[0]
    first = rig.take(10)
    assert sum(1 for s in first if s >= late) == pytest.approx(10 * 24 / (24 + 8), abs=3)


def test_random_arrivals_are_delivered_exactly_once_in_order_of_each_priority() -> None:
    dice = Random(5)
    rig = Rig()
    priority_of: dict[int, int] = {}
    delivered: list[int] = []
    for _ in range(300):
        priorities = [dice.randrange(PRIORITIES) for _ in range(dice.randint(1, 20))]
        priority_of.update(zip(send(rig, priorities), priorities, strict=True))
        delivered += rig.take(dice.randint(1, 20))
    while more := rig.take(50):
        delivered += more
    assert sorted(delivered) == sorted(priority_of)
    for priority in range(PRIORITIES):
        mine = [sequence for sequence in delivered if priority_of[sequence] == priority]
        assert mine == sorted(mine)


def test_a_large_message_of_low_priority_is_not_overtaken_for_ever() -> None:
    """With few bytes to spend, the large message is first as soon as it is its turn."""
    rig = Rig()
    large = expand(rig.send(encode([bytes(1_000)], priorities=[0])).runs)[0]
    for _ in range(20):
        send(rig, [9] * 50, size=90)
    for _ in range(200):
        granted = rig.receive(10, START_MS, max_bytes=1_000)
        assert granted is not None
        if large in expand(granted.runs):
            return
    raise AssertionError("the large message starves")
