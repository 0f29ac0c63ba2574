"""The warehouse: exact for every reader at every moment, whatever is repeated or cut short."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import pytest

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.job_state import JobState
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import SeenNumbers
from penstock.pipeline.warehouse import files as files_module
from penstock.pipeline.warehouse import paths, swapping
from penstock.pipeline.warehouse.compaction import compact
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import begin_generation
from penstock.pipeline.warehouse.lock import JobRunsError, job_lock
from penstock.pipeline.warehouse.table import WarehouseTable, column
from penstock.pipeline.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS = WarehouseTable("events", "Test.", "batches", (column("value", "int64", "A value."),), by_day=True)
TOTALS = WarehouseTable("totals", "Test.", "whole", (column("value", "int64", "A value."),))
DAILY = WarehouseTable("daily", "Test.", "days", (column("value", "int64", "A value."),), by_day=True)


class CrashError(Exception):
    """What a kill is, here."""


def rows(spark: SparkSession, *values: int, day: str = "2026-11-16") -> DataFrame:
    return local_rows(spark, [(value, date.fromisoformat(day)) for value in values], "value long, day date")


def seen_by_duckdb(root: Path, table: str) -> list[int]:
    """What a person with DuckDB sees; nothing where there is no file."""
    if not list((root / table).rglob("*.parquet")):
        return []
    query = (
        f"select value from read_parquet('{root}/{table}/**/*.parquet', hive_partitioning=true) order by 1"
    )
    return [row[0] for row in duckdb.execute(query).fetchall()]


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, Files(spark, str(tmp_path)), "g1")


def test_a_batch_that_is_repeated_adds_nothing(
    warehouse: Warehouse, spark: SparkSession, tmp_path: Path
) -> None:
    assert warehouse.add_batch(EVENTS, 0, rows(spark, 1, 2), parts=1)
    assert warehouse.add_batch(EVENTS, 1, rows(spark, 3, day="2026-11-17"), parts=1)
    assert not warehouse.add_batch(EVENTS, 1, rows(spark, 3, day="2026-11-17"), parts=1)
    assert seen_by_duckdb(tmp_path, "events") == [1, 2, 3]
    by_pandas = pd.read_parquet(tmp_path / "events")
    assert sorted(by_pandas["value"]) == [1, 2, 3]
    assert set(by_pandas["day"].astype(str)) == {"2026-11-16", "2026-11-17"}
    assert warehouse.days_of(EVENTS, 0, 1) == [date(2026, 11, 17)]
    assert [row["value"] for row in warehouse.read_batches(EVENTS, 0).collect()] == [3]


def test_a_batch_that_was_cut_short_is_not_seen(
    warehouse: Warehouse, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Files, "rename", _crash)
        with pytest.raises(CrashError):
            warehouse.add_batch(EVENTS, 0, rows(spark, 1, 2), parts=1)
    assert seen_by_duckdb(tmp_path, "events") == []
    swapping.recover(warehouse.files, "events")
    assert not list((tmp_path / "_staging").rglob("*.parquet"))
    assert warehouse.add_batch(EVENTS, 0, rows(spark, 1, 2), parts=1)
    assert seen_by_duckdb(tmp_path, "events") == [1, 2]


@pytest.mark.parametrize("swapped", [False, True])
def test_what_gets_its_name_is_on_disk_before_and_its_name_after(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: bool
) -> None:
    steps: list[str] = []
    sync, rename, exchange = os.fsync, os.rename, files_module._exchange

    def noted_sync(opened: int) -> None:
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{opened}")))
        sync(opened)

    def noted_rename(source: str, target: str) -> None:
        steps.append("rename")
        rename(source, target)

    def noted_exchange(one: str, other: str) -> bool:
        steps.append("exchange")
        return exchange(one, other)

    for name in ("fresh", *(["kept"] if swapped else [])):
        (tmp_path / name / "day=1").mkdir(parents=True)
        (tmp_path / name / "day=1" / f"{name}.parquet").write_text("rows")
    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "rename", noted_rename)
    monkeypatch.setattr(files_module, "_exchange", noted_exchange)
    swapping.swap(Files(spark, str(tmp_path)), "fresh", "kept")
    at = steps.index("exchange" if swapped else "rename")
    assert {"fresh.parquet", "day=1", "fresh"} <= set(steps[:at])
    assert tmp_path.name in steps[at:]
    assert (tmp_path / "kept" / "day=1" / "fresh.parquet").read_text() == "rows"


def test_where_directories_are_not_renamed_at_once_only_a_finished_batch_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = Warehouse(spark, Files(spark, str(tmp_path), renames_whole=False), "g1")
    assert warehouse.add_batch(EVENTS, 0, rows(spark, 1, 2), parts=1)
    done = next(tmp_path.rglob("_SUCCESS"))
    done.unlink()  # as if it had been killed on the way
    assert warehouse.add_batch(EVENTS, 0, rows(spark, 1, 2), parts=1)
    assert not warehouse.add_batch(EVENTS, 0, rows(spark, 1, 2), parts=1)
    assert seen_by_duckdb(tmp_path, "events") == [1, 2]


def test_days_and_whole_tables_are_replaced(
    warehouse: Warehouse, spark: SparkSession, tmp_path: Path
) -> None:
    days = [date(2026, 11, 16), date(2026, 11, 17)]
    both = rows(spark, 1).unionByName(rows(spark, 2, day="2026-11-17"))
    warehouse.replace_days(DAILY, both, days)
    warehouse.replace_days(DAILY, rows(spark, 5), days[:1])
    assert seen_by_duckdb(tmp_path, "daily") == [2, 5]
    warehouse.replace_days(DAILY, rows(spark), days[1:])
    assert seen_by_duckdb(tmp_path, "daily") == [5]
    assert warehouse.whole_through(TOTALS) is None
    warehouse.replace_whole(TOTALS, rows(spark, 1, 2), 3)
    warehouse.replace_whole(TOTALS, rows(spark, 9), 7)
    assert seen_by_duckdb(tmp_path, "totals") == [9]
    assert warehouse.whole_through(TOTALS) == 7


# -- compaction ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven batches of a value each, in spans of two and blocks of two spans; to be copied."""
    root = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        small_spans(patch)
        warehouse = Warehouse(spark, Files(spark, str(root)), "g1")
        for batch in range(7):
            warehouse.add_batch(EVENTS, batch, rows(spark, batch), parts=1)
    return root


@pytest.fixture
def many(warehouse: Warehouse, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """The seven batches, for one test."""
    small_spans(monkeypatch)
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return warehouse


def small_spans(patch: pytest.MonkeyPatch) -> None:
    """So that a few batches fill them."""
    patch.setattr(paths, "SPAN_BATCHES", 2)
    patch.setattr(paths, "BLOCK_SPANS", 2)


def directories(warehouse: Warehouse) -> list[int]:
    return list(paths.numbers_of(warehouse.batch_directories(EVENTS, -1, None), "batch_id"))


def test_full_spans_and_blocks_become_one(many: Warehouse, tmp_path: Path) -> None:
    compact(many, EVENTS, 5)
    assert directories(many) == [3, 5, 6]
    assert seen_by_duckdb(tmp_path, "events") == list(range(7))
    assert many.has_batch(EVENTS, 5)
    assert not many.has_batch(EVENTS, 7)
    compact(many, EVENTS, 6, everything=True)
    assert directories(many) == [3, 6]
    assert seen_by_duckdb(tmp_path, "events") == list(range(7))


def test_what_was_not_rolled_up_keeps_its_batches(many: Warehouse) -> None:
    compact(many, EVENTS, 2)
    assert directories(many) == [1, 2, 3, 4, 5, 6]


def _crash(*_: object, **__: object) -> bool:
    raise CrashError


CRASHES: list[tuple[str, Callable[[pytest.MonkeyPatch], None]]] = [
    ("before the exchange", lambda patch: patch.setattr(Files, "exchange", _crash)),
    ("before what was replaced is removed", lambda patch: _crash_in_removal(patch, "_staging", after=0)),
]


def _crash_in_removal(patch: pytest.MonkeyPatch, beginning: str, after: int) -> None:
    honest = Files.remove
    left = [after]

    def remove(self: Files, path: str) -> None:
        if path.startswith(beginning):
            if left[0] == 0:
                raise CrashError
            left[0] -= 1
        honest(self, path)

    patch.setattr(Files, "remove", remove)


@pytest.mark.parametrize("crash", [crash for _, crash in CRASHES], ids=[name for name, _ in CRASHES])
def test_a_crash_in_compaction_doubles_and_loses_nothing(
    many: Warehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crash: Callable[[pytest.MonkeyPatch], None],
) -> None:
    with monkeypatch.context() as patch:
        crash(patch)
        with pytest.raises(CrashError):
            compact(many, EVENTS, 5)
    assert seen_by_duckdb(tmp_path, "events") == list(range(7))
    swapping.recover(many.files, "events")
    compact(many, EVENTS, 5)
    assert seen_by_duckdb(tmp_path, "events") == list(range(7))
    assert directories(many) == [3, 5, 6]


@pytest.mark.parametrize("renames", range(3))
def test_without_an_exchange_a_crash_never_doubles_and_is_mended(
    many: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    monkeypatch.setattr(Files, "exchange", lambda *_: False)
    honest, left = Files.rename, [renames]

    def rename(self: Files, source: str, target: str) -> bool:
        if left[0] == 0:
            raise CrashError
        left[0] -= 1
        return honest(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Files, "rename", rename)
        with pytest.raises(CrashError):
            compact(many, EVENTS, 5)
    seen = seen_by_duckdb(tmp_path, "events")
    assert len(seen) == len(set(seen))
    swapping.recover(many.files, "events")
    assert seen_by_duckdb(tmp_path, "events") == list(range(7))
    compact(many, EVENTS, 5)
    assert seen_by_duckdb(tmp_path, "events") == list(range(7))


# -- generations and locks -----------------------------------------------------------------------------------


def test_checkpoint_and_tables_belong_together(spark: SparkSession, tmp_path: Path) -> None:
    files, checkpoint = Files(spark, str(tmp_path / "a")), Files(spark, str(tmp_path / "checkpoint"))
    begun = begin_generation(files, checkpoint, "job", [EVENTS])
    assert begin_generation(files, checkpoint, "job", [EVENTS]) == begun
    Warehouse(spark, files, begun).add_batch(EVENTS, 0, rows(spark, 1), parts=1)
    fresh = Files(spark, str(tmp_path / "other"))
    with pytest.raises(PipelineError, match="--rebuild"):
        begin_generation(files, fresh, "job", [EVENTS])
    with pytest.raises(PipelineError, match="another warehouse"):
        begin_generation(Files(spark, str(tmp_path / "b")), checkpoint, "job", [EVENTS])
    again = begin_generation(files, fresh, "job", [EVENTS], rebuild=True)
    assert again != begun
    assert not files.exists("events")


def test_a_crash_before_the_checkpoint_is_told_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    files, checkpoint = Files(spark, str(tmp_path / "a")), Files(spark, str(tmp_path / "checkpoint"))
    begun = begin_generation(files, checkpoint, "job", [EVENTS])
    checkpoint.remove("")
    assert begin_generation(files, checkpoint, "job", [EVENTS]) == begun


@pytest.mark.parametrize("removed", ["events", "_state", "checkpoint"])
def test_a_rebuild_that_a_crash_cut_short_is_finished_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: str
) -> None:
    files, checkpoint = Files(spark, str(tmp_path / "a")), Files(spark, str(tmp_path / "checkpoint"))
    begun = begin_generation(files, checkpoint, "job", [EVENTS])
    checkpoint.write_text("offsets/7", "read so far")
    Warehouse(spark, files, begun).add_batch(EVENTS, 0, rows(spark, 1), parts=1)
    honest = Files.remove

    def remove(self: Files, path: str) -> None:
        if self is checkpoint and removed == "checkpoint":
            honest(self, "penstock.json")  # a directory goes file by file
            raise CrashError
        honest(self, path)
        if path.startswith(removed):
            raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(Files, "remove", remove)
        with pytest.raises(CrashError):
            begin_generation(files, checkpoint, "job", [EVENTS], rebuild=True)
    again = begin_generation(files, checkpoint, "job", [EVENTS])
    assert again != begun
    assert not files.exists("events")
    assert not checkpoint.exists("offsets/7")
    assert begin_generation(files, checkpoint, "job", [EVENTS]) == again


@pytest.mark.parametrize("content", ["", '{"generation": "g1', "[]"])
def test_a_word_that_is_damaged_is_named_and_a_rebuild_goes_without_it(
    spark: SparkSession, tmp_path: Path, content: str
) -> None:
    files, checkpoint = Files(spark, str(tmp_path / "a")), Files(spark, str(tmp_path / "checkpoint"))
    for damaged in (tmp_path / "a/_jobs/job.json", tmp_path / "checkpoint/penstock.json"):
        begun = begin_generation(files, checkpoint, "job", [EVENTS])
        Warehouse(spark, files, begun).add_batch(EVENTS, 0, rows(spark, 1), parts=1)
        damaged.write_text(content)
        with pytest.raises(PipelineError, match=rf"{damaged} is damaged.* --rebuild"):
            begin_generation(files, checkpoint, "job", [EVENTS])
        assert seen_by_duckdb(tmp_path / "a", "events") == [1]
        assert begin_generation(files, checkpoint, "job", [EVENTS], rebuild=True) != begun
        assert not files.exists("events")


@pytest.mark.parametrize("name", ["rolling.json", "seen/0.json", "kept.json"])
def test_what_a_job_remembers_is_named_where_it_is_damaged(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    memory = JobState(Files(spark, str(tmp_path)), "job", "g1")
    memory.finish_batch(0, SeenNumbers())
    (tmp_path / "_state/job/g1" / name).write_text('{"cut sho')
    with pytest.raises(PipelineError, match=f"{name} is damaged"):
        [memory.rolling(), memory.seen_by(0), memory.first_day()]


def test_a_job_runs_once_at_a_time(tmp_path: Path) -> None:
    holder = job_lock(str(tmp_path), "usage")
    with holder, job_lock(str(tmp_path), "audit"), pytest.raises(JobRunsError, match="is already running"):
        job_lock(str(tmp_path), "usage").__enter__()
    with job_lock(str(tmp_path), "usage"):
        pass
