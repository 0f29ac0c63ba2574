"""Records that stand where they were not written: what they hide may have been any partition's."""

from __future__ import annotations

from penstock.storage.errors import Damage
from penstock.storage.ledger import Ledger

FILE = "journal/0000000002.journal"


def ledger() -> Ledger:
    """Two partitions with a snapshot, and some records of the first behind it."""
    found = Ledger({1: 3, 2: 5}, taken={1: 100, 2: 100})
    assert found.record(1, 4, FILE, 200, 200)
    return found


def damaged(found: Ledger) -> list[int]:
    return [damage.partition for damage in found.finish()]


def test_without_a_misplaced_record_nobody_is_suspected() -> None:
    assert damaged(ledger()) == []


def test_a_record_that_stands_there_a_second_time_hides_another_one() -> None:
    found = ledger()
    assert not found.record(1, 4, FILE, 240, 240)
    assert damaged(found) == [1, 2]


def test_an_unreadable_record_that_the_snapshot_holds_cannot_have_been_written_behind_it() -> None:
    found = ledger()
    found.unreadable_record(1, 2, FILE, 240, "the contents of an entry are damaged", 240)
    assert damaged(found) == [1, 2]


def test_an_unreadable_record_before_the_snapshot_is_not_needed() -> None:
    found = ledger()
    found.unreadable_record(1, 2, FILE, 40, "the contents of an entry are damaged", 40)
    assert damaged(found) == []


def test_a_misplaced_record_of_a_partition_that_is_damaged_hides_another_one_too() -> None:
    found = Ledger({1: 3, 2: 5}, [Damage(1, FILE, 0, "it is damaged")], taken={1: 100, 2: 100})
    assert not found.record(1, 3, FILE, 240, 240)
    assert damaged(found) == [1, 2]


def test_who_goes_on_behind_it_without_a_gap_has_lost_nothing() -> None:
    found = ledger()
    assert not found.record(1, 4, FILE, 240, 240)
    assert found.record(2, 6, FILE, 280, 280)
    assert damaged(found) == [1]


def test_records_of_a_damaged_partition_may_be_written_again_behind_a_cut() -> None:
    found = ledger()
    found.unreadable_record(1, 5, FILE, 240, "the contents of an entry are damaged", 240)
    assert not found.cut(1, 3, FILE, 280)
    assert not found.record(1, 4, FILE, 320, 320)
    assert damaged(found) == [1]


def test_records_may_be_written_again_behind_a_cut_to_before_the_snapshot() -> None:
    found = ledger()
    assert not found.cut(1, 1, FILE, 240)
    assert not found.record(1, 2, FILE, 280, 280)
    found.unreadable_record(1, 3, FILE, 320, "the contents of an entry are damaged", 320)
    assert damaged(found) == [1]


def test_a_record_before_the_cut_of_a_damaged_partition_hides_another_one() -> None:
    found = ledger()
    assert not found.cut(1, 2, FILE, 240)
    assert not found.record(1, 2, FILE, 280, 280)
    assert damaged(found) == [1, 2]
