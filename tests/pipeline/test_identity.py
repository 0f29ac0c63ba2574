"""Who a row is: the same in every order, another in every scope, and rows that are alike are told apart."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.model import limits
from penstock.pipeline.sink.identity import Occurrences, RowIdentities

rows = st.lists(st.sampled_from([b"a", b"b", b"c", b"dd"]), max_size=60)


@given(rows, st.integers(1, 7), st.randoms(use_true_random=False))
def test_ids_are_the_same_in_whatever_order_rows_come(
    given_rows: list[bytes], size: int, dice: random.Random
) -> None:
    def ids(order: list[bytes], scope: str = "q/1/0") -> list[str]:
        identities = RowIdentities(scope)
        return [one for at in range(0, len(order), size) for one in identities.take(order[at : at + size])]

    shuffled = list(given_rows)
    dice.shuffle(shuffled)
    first, again = ids(given_rows), ids(shuffled)
    assert sorted(first) == sorted(again)
    assert len(set(first)) == len(first), "each row has its own"
    assert not set(first) & set(ids(given_rows, "q/2/0")), "another epoch, other ids"
    assert all(len(one) <= limits.DEDUPLICATION_ID_BYTES for one in first)


@given(st.lists(st.lists(st.integers(0, 5), max_size=9), max_size=12))
def test_occurrences_are_counted_over_all_that_came_before(chunks: list[list[int]]) -> None:
    occurrences, expected = Occurrences(), Counter[int]()
    for chunk in chunks:
        counts = []
        for key in chunk:
            counts.append(expected[key])
            expected[key] += 1
        assert occurrences.take(np.array(chunk, np.uint64)).tolist() == counts
