"""The newest records of what a node leads: an unbroken stretch of each partition, whatever is dropped."""

from __future__ import annotations

import random

import pytest

from penstock.backend.node.logbook import WrittenRecord
from penstock.replication.primary_secondary.node.leader import recent_entries
from penstock.replication.primary_secondary.node.leader.recent_entries import RecentEntries


@pytest.mark.parametrize("seed", range(20))
def test_what_is_there_is_unbroken_and_bounded(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(recent_entries, "RECENT_BYTES", 40 * (recent_entries._OVERHEAD_BYTES + 10))
    monkeypatch.setattr(recent_entries, "_GONE_AT_LEAST", dice.choice([0, 10, 1_000]))
    written: list[WrittenRecord] = []
    recent = RecentEntries(written)
    last = dict.fromkeys(range(5), 0)
    for _ in range(2_000):
        partition = dice.randrange(5)
        if dice.random() < 0.05:
            recent.forget(partition)
            last[partition] += dice.randrange(2)  # a gap, now and then
            continue
        last[partition] += 1
        written.append(WrittenRecord(partition, last[partition], b"%10d" % last[partition], b""))
        recent.take_touched()
        kept = [len(entries) for _, entries in recent._rows.values()]
        assert sum(kept) <= 40
        assert recent._bytes == sum(kept) * (recent_entries._OVERHEAD_BYTES + 10)
        assert len(recent._order) == sum(kept) + recent._gone_records
        found = recent.since(partition, last[partition], 1 << 20)
        assert [entry.head for entry in found] == [b"%10d" % last[partition]]
        for other, (first, entries) in recent._rows.items():
            assert [entry.head for entry in entries] == [
                b"%10d" % index for index in range(first, last[other] + 1)
            ]


def test_to_drop_all_partitions_goes_through_the_records_a_few_times_only() -> None:
    written: list[WrittenRecord] = []
    recent = RecentEntries(written)
    for index in range(1, 11):
        written += [WrittenRecord(partition, index, b"x", b"") for partition in range(4_000)]
    recent.take_touched()
    rebuilt = []
    leave_out = RecentEntries._leave_out_gone

    class Counting(RecentEntries):
        def _leave_out_gone(self) -> None:
            rebuilt.append(len(self._order))
            leave_out(self)

    recent.__class__ = Counting
    for partition in range(4_000):
        recent.forget(partition)
    assert sum(rebuilt) <= 3 * 40_000
    assert recent._bytes == 0
