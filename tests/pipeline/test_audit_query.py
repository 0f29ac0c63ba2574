"""Searching the audit trail: the last so many rows, without holding all that match."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.pipeline import audit_query
from penstock.pipeline.audit_query import AuditQuery, search
from penstock.pipeline.report.reading import Shelf
from tests.pipeline.rows import NOON, usage_row


@pytest.mark.parametrize("held", [0, 3, 100_000])
def test_the_last_rows_are_those_of_the_latest_times_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(audit_query, "HELD_ROWS", held)
    numbers = [7, 1, 9, 3, 8, 2, 6, 5, 4]
    for batch in range(3):
        directory = tmp_path / f"audit/gen=g1/block=0/span=0/batch_id={batch}/day=2026-11-16"
        directory.mkdir(parents=True)
        rows = [
            usage_row(number, time=NOON + timedelta(seconds=number))
            for number in numbers[3 * batch : 3 * batch + 3]
        ]
        parquet.write_table(pa.Table.from_pylist(rows), directory / "part-0.parquet")
    for limit, expected in (
        (2, [8, 9]),
        (9, [*range(1, 10)]),
        (20, [*range(1, 10)]),
        (None, [*range(1, 10)]),
    ):
        found = search(str(tmp_path), AuditQuery(limit=limit))
        assert [row["number"] for row in found] == expected
    assert [*search(str(tmp_path), AuditQuery(user="nobody", limit=5))] == []


def test_a_trail_whose_rows_were_all_too_old_has_none(tmp_path: Path) -> None:
    (tmp_path / "audit/gen=g1/block=0/span=0/batch_id=0").mkdir(parents=True)
    assert [*search(str(tmp_path), AuditQuery(limit=5))] == []
    assert Shelf(str(tmp_path), NOON, NOON).rows("audit", ["time"], "time") is None
