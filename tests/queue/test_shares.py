"""Partitions are shared out evenly, and change hands only where they must."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from penstock.queue.shares import share_out


def test_the_first_member_has_the_only_partition_and_keeps_it() -> None:
    assert share_out(1, ["a"], {}) == {"a": [0]}
    assert share_out(1, ["a", "b"], {"a": [0]}) == {"a": [0], "b": []}
    assert share_out(1, ["b", "a"], {"a": [0]}) == {"a": [0], "b": []}
    assert share_out(1, ["b"], {"a": [0]}) == {"b": [0]}
    assert share_out(3, [], {"a": [0]}) == {}


def test_a_member_that_joins_takes_its_share_from_those_who_have_most() -> None:
    held = share_out(7, ["a", "b"], {})
    assert held == {"a": [0, 1, 2, 3], "b": [4, 5, 6]}
    assert share_out(7, ["a", "b", "c"], held) == {"a": [0, 1, 2], "b": [4, 5], "c": [3, 6]}


@given(some.integers(0, 20), some.lists(some.lists(some.sampled_from("abcdefgh"), unique=True), max_size=8))
def test_shares_are_complete_even_and_move_as_little_as_can_be(
    partitions: int, histories: list[list[str]]
) -> None:
    held: dict[str, list[int]] = {}
    for members in histories:
        shares = share_out(partitions, members, held)
        assert set(shares) == set(members)
        if members:
            everything = sorted(number for share in shares.values() for number in share)
            assert everything == list(range(partitions))
            sizes = [len(share) for share in shares.values()]
            assert max(sizes) - min(sizes) <= 1
            assert shares == share_out(partitions, members, shares), "nothing moves without a reason"
            kept = sum(len({*held.get(member, ())} & {*shares[member]}) for member in members)
            assert kept == most_that_can_stay(partitions, members, held)
        held = shares


def most_that_can_stay(partitions: int, members: list[str], held: dict[str, list[int]]) -> int:
    fewest, larger = divmod(partitions, len(members))
    holding = [len(held.get(member, ())) for member in members]
    more_than_fewest = sum(count > fewest for count in holding)
    return sum(min(count, fewest) for count in holding) + min(larger, more_than_fewest)
