"""The bookkeeping of indexes by itself: cuts, numbers that come back, and partitions that are gone or damaged already."""

from __future__ import annotations

import pytest

from penstock.storage.errors import Damage
from penstock.storage.ledger import Ledger

FILE = "journal/0000000001.journal"


def _reasons(ledger: Ledger) -> dict[int, str]:
    return {damage.partition: damage.reason for damage in ledger.finish()}


def test_a_cut_takes_records_away_and_their_numbers_are_used_again() -> None:
    ledger = Ledger({})
    for index in (1, 2, 3):
        assert ledger.record(1, index, FILE, index)
    assert ledger.cut(1, 1, FILE, 10)
    assert ledger.last[1] == 1
    assert ledger.record(1, 2, FILE, 20)
    assert not ledger.finish()


def test_a_cut_behind_the_last_record_shows_that_records_are_missing() -> None:
    ledger = Ledger({})
    ledger.record(1, 1, FILE, 0)
    assert not ledger.cut(1, 4, FILE, 10)
    assert "records 2 to 4 of the partition cannot be read" in _reasons(ledger)[1]


def test_a_cut_into_the_snapshot_is_damage() -> None:
    """What the snapshot holds cannot be cut by the journal behind it."""
    ledger = Ledger({1: 5})
    assert not ledger.cut(1, 3, FILE, 10)
    assert _reasons(ledger) == {1: "it is cut to 3, before its snapshot"}


@pytest.mark.parametrize("state", ["gone", "damaged"])
def test_a_partition_that_is_gone_or_damaged_is_not_cut(state: str) -> None:
    earlier = Damage(1, FILE, 0, "an earlier life found it")
    ledger = Ledger({1: 5}, [earlier] if state == "damaged" else [], [1] if state == "gone" else [])
    assert not ledger.cut(1, 5, FILE, 10)
    assert ledger.finish() == ([earlier] if state == "damaged" else [])


def test_a_partition_that_is_gone_has_no_damage() -> None:
    ledger = Ledger({}, gone=[1])
    ledger.unreadable_record(1, 3, FILE, 0, "the contents of an entry are damaged")
    ledger.incomplete_image(1, FILE, 0)
    ledger.table([(1, 7)], FILE, 50)
    assert not ledger.finish()


def test_a_record_that_the_snapshot_holds_is_passed_over_and_shows_that_nothing_was_lost_before_it() -> None:
    """Of a partition whose snapshot does not say where in the journal its state was taken."""
    ledger = Ledger({1: 5, 2: 5})
    ledger.hole(FILE, 0, "the header of an entry is damaged")
    assert not ledger.record(1, 4, FILE, 10)
    assert list(_reasons(ledger)) == [2]


def test_a_table_with_fewer_records_than_were_read_shows_that_a_cut_was_lost() -> None:
    ledger = Ledger({})
    for index in (1, 2, 3):
        ledger.record(1, index, FILE, index)
    ledger.table([(1, 2)], FILE, 50)
    assert _reasons(ledger) == {1: "records after 2 were cut, and where cannot be read"}
