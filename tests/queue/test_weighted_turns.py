"""Several queues served together: by their weights within a bound, nobody starves, nothing is left unused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.queue.ready.weighted_turns import TurnsInUse, WeightedTurns

WEIGHTS = st.lists(st.integers(1, 50), min_size=2, max_size=6)
ENDLESS = 10**9


def serve(shares: WeightedTurns, available: list[int], messages: int) -> list[int]:
    """Plans, gives as planned, and takes it out of what is available."""
    given_now = shares.plan(available, messages)
    for index, count in enumerate(given_now):
        available[index] -= count
    shares.served(given_now, [count > 0 for count in available])
    return given_now


@given(WEIGHTS, st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_service_follows_the_weights_within_one_message_of_each(
    weights: list[int], requests: list[int]
) -> None:
    shares, available = WeightedTurns(weights), [ENDLESS] * len(weights)
    totals = [0] * len(weights)
    for messages in requests:
        given_now = serve(shares, available, messages)
        assert sum(given_now) == messages
        totals = [total + count for total, count in zip(totals, given_now, strict=True)]
        for i, one in enumerate(weights):
            for j, other in enumerate(weights):
                apart = abs(totals[i] / one - totals[j] / other)
                assert apart <= 1 / one + 1 / other + 1e-6, (totals, weights)


@given(WEIGHTS, st.integers(1, 7))
def test_the_lowest_is_served_within_a_round(weights: list[int], messages: int) -> None:
    shares, available = WeightedTurns(weights), [ENDLESS] * len(weights)
    lowest = weights.index(min(weights))
    round_messages = sum(-(-weight // weights[lowest]) + 1 for weight in weights)
    since = 0
    for _ in range(4 * round_messages):
        given_now = serve(shares, available, messages)
        since = 0 if given_now[lowest] else since + messages
        assert since <= round_messages + messages


@given(
    WEIGHTS.flatmap(
        lambda weights: st.tuples(
            st.just(weights),
            st.lists(
                st.tuples(
                    st.lists(st.integers(0, 30), min_size=len(weights), max_size=len(weights)),
                    st.integers(1, 40),
                ),
                max_size=40,
            ),
        )
    )
)
def test_no_share_is_wasted_and_nobody_gives_what_it_has_not(
    case: tuple[list[int], list[tuple[list[int], int]]],
) -> None:
    weights, steps = case
    shares, available = WeightedTurns(weights), [0] * len(weights)
    for arrivals, messages in steps:
        available = [have + new for have, new in zip(available, arrivals, strict=True)]
        before = list(available)
        given_now = serve(shares, available, messages)
        assert sum(given_now) == min(messages, sum(before))
        assert all(0 <= count <= have for count, have in zip(given_now, before, strict=True))
        assert min(shares._ahead) >= 0


@given(
    st.lists(
        st.tuples(st.integers(1, 1_000), st.integers(0, 3_000), st.integers(0, 2_000)), min_size=1, max_size=8
    ),
    st.integers(1, 5_000),
)
def test_many_at_once_are_those_that_would_come_one_after_the_other(
    queues: list[tuple[int, int, int]], messages: int
) -> None:
    """However unequal the places, the weights and what there is."""
    shares = WeightedTurns([weight for weight, _, _ in queues])
    shares._ahead = [step * place // 7 for step, (_, _, place) in zip(shares._steps, queues, strict=True)]
    available = [count for _, count, _ in queues]
    due = sorted(
        (shares._ahead[i] + number * shares._steps[i], shares._steps[i], i)
        for i, count in enumerate(available)
        for number in range(count)
    )[:messages]
    expected = [sum(1 for _, _, which in due if which == i) for i in range(len(queues))]
    assert shares.plan(available, messages) == expected


def test_single_messages_take_turns_by_weight() -> None:
    shares, available = WeightedTurns([3, 1]), [ENDLESS, ENDLESS]
    turns = [serve(shares, available, 1).index(1) for _ in range(12)]
    assert turns.count(1) == 3
    assert 0 < turns.index(1) < 4, "the heavy one begins, the light one has its turn within the round"


def test_a_queue_that_was_empty_saved_nothing_up() -> None:
    shares, available = WeightedTurns([1, 1]), [ENDLESS, 0]
    for _ in range(100):
        assert serve(shares, available, 10) == [10, 0]
    available[1] = ENDLESS
    for _ in range(10):
        assert serve(shares, available, 10) == [5, 5]


def test_who_was_cut_short_by_bytes_comes_first_the_next_time() -> None:
    shares = WeightedTurns([8, 1])
    available = [ENDLESS, ENDLESS]
    assert shares.plan(available, 9) == [8, 1]
    assert shares.turn_order() == [0, 1]
    shares.served([8, 0], [True, True])  # there was no room for the one of the light queue
    assert shares.turn_order() == [1, 0]
    assert shares.plan(available, 1) == [0, 1]


def test_sets_of_queues_share_their_turns_and_the_oldest_are_forgotten() -> None:
    in_use = TurnsInUse(most=3)
    first = in_use.of(((1, 8), (2, 1)))
    for number in range(10, 12):
        in_use.of(((number, 1), (number + 100, 1)))
    assert in_use.of(((1, 8), (2, 1))) is first
    for number in range(20, 23):
        in_use.of(((number, 1), (number + 100, 1)))
    assert len(in_use) == 3
    assert in_use.of(((1, 8), (2, 1))) is not first
