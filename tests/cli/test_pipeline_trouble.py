"""What is wrong with a warehouse, as sentences that name the place and what to do: nothing of it is a defect of Penstock."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.exits import CommandError
from penstock.cli.pipeline.job_command import keep_of, pipeline_errors
from penstock.pipeline import session
from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.warehouse import arrow_files
from penstock.pipeline.warehouse.lock import job_lock
from tests.cli.conftest import Penstock
from tests.cli.test_pipeline import NOW, audit_row, write

PLACE = f"audit/gen=g1/block=0/span=0/batch_id=0/day={NOW.date().isoformat()}"


@pytest.fixture
def trail(tmp_path: Path) -> Path:
    """A warehouse with an audit trail of one row."""
    write(tmp_path, PLACE, [audit_row(1, time=NOW)])
    return tmp_path


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "running_session", started)


# -- places that cannot be written ---------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_in_place_of_the_warehouse_is_said(tmp_path: Path, below: str) -> None:
    (tmp_path / "afile").write_text("not a directory")
    said = rf"afile{below} cannot be written: .*--warehouse"
    with (
        pytest.raises(CommandError, match=said),
        pipeline_errors(),
        job_lock(f"{tmp_path}/afile{below}", "usage"),
    ):
        pass
    assert (tmp_path / "afile").read_text() == "not a directory"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOENT])
def test_a_warehouse_that_may_not_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(path: str, *arguments: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "makedirs", refuse)
    with (
        pytest.raises(CommandError, match=rf"{os.strerror(number)} \(.*_locks\).*--warehouse"),
        pipeline_errors(),
        job_lock(f"{tmp_path}", "usage"),
    ):
        pass


def test_any_other_file_that_cannot_be_written_is_named() -> None:
    with (
        pytest.raises(
            CommandError, match=r"^/full/disk cannot be .*No space left.*run the same command again"
        ),
        pipeline_errors(),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/disk")
    with pytest.raises(OSError, match="of no file"), pipeline_errors():
        raise OSError("of no file")


# -- tables that cannot be read ------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"PAR1 no more", b"x" * 5000])
def test_a_damaged_file_is_named_with_what_to_do(penstock: Penstock, trail: Path, content: bytes) -> None:
    (trail / PLACE / "part-1.parquet").write_bytes(content)
    write(trail, "usage_parts/gen=g1/day=2026-11-16", [{"minute": NOW}])
    (trail / "usage_parts/gen=g1/day=2026-11-16/part-0.parquet").write_bytes(content)
    for command in (("audit", "query"), ("pipeline", "report", "-o", f"{trail}/page.html")):
        outcome = penstock(*command, "--warehouse", str(trail))
        assert outcome.code == 1
        assert "defect" not in outcome.errors
        assert ".parquet" in outcome.errors
        assert "--rebuild" in outcome.errors
    assert not (trail / "page.html").exists()


def test_files_that_go_while_they_are_read_are_no_defect(
    penstock: Penstock, trail: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.dataset as ds

    found = ds.dataset

    def compacted_meanwhile(*arguments: Any, **options: Any) -> Any:
        listed = found(*arguments, **options)
        (trail / PLACE / "part-0.parquet").unlink()
        return listed

    monkeypatch.setattr(ds, "dataset", compacted_meanwhile)
    outcome = penstock("audit", "query", "--warehouse", str(trail))
    assert outcome.code == 1
    assert "changed while they were read" in outcome.errors
    assert "run it again" in outcome.errors


def test_a_trail_that_is_gone_is_said_with_how_to_make_it_anew(penstock: Penstock, tmp_path: Path) -> None:
    assert "--rebuild" in penstock("audit", "query", "--warehouse", str(tmp_path)).errors


# -- names of warehouses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["{}", "file:{}", "file://{}"])
def test_a_warehouse_has_the_names_that_hadoop_gives_it(penstock: Penstock, trail: Path, name: str) -> None:
    outcome = penstock("audit", "query", "--json", "--warehouse", name.format(trail))
    assert [row["number"] for row in outcome.objects] == [1]
    page = penstock("pipeline", "report", "-o", f"{trail}/page.html", "--warehouse", name.format(trail))
    assert page.code == 0


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("name", ["{}/none", "file:{}/none"])
def test_a_warehouse_that_is_not_there_is_not_compacted(
    penstock: Penstock, tmp_path: Path, name: str
) -> None:
    outcome = penstock("pipeline", "compact", "--warehouse", name.format(tmp_path))
    assert outcome.code == 1
    assert f"there is no warehouse in {name.format(tmp_path)}" in outcome.errors


def test_where_only_spark_can_look_nothing_is_looked_at_before() -> None:
    assert arrow_files.local_path("s3a://bucket/path") is None
    assert arrow_files.local_path("file:/some/where") == "/some/where"
    assert arrow_files.local_path("here") == os.path.abspath("here")


# -- times ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("audit", "query"), ("pipeline", "report")])
@pytest.mark.parametrize("since", ["99999999999d", "9999w9999999d", "0001-01-01T00:00+05:00"])
def test_a_time_before_all_years_is_wrong_usage(
    penstock: Penstock, command: tuple[str, ...], since: str
) -> None:
    outcome = penstock(*command, "--since", since)
    assert outcome.code == 2
    assert "before the year 1" in " ".join((outcome.output + outcome.errors).replace("│", " ").split())


def test_a_search_that_ends_before_it_begins_is_refused(penstock: Penstock, trail: Path) -> None:
    def searched(since: str) -> int:
        return penstock("audit", "query", "--warehouse", str(trail), "--since", since, "--until", "2h").code

    assert searched("1h") == 2
    assert searched("3h") == 0


@pytest.mark.parametrize("kept", ["99999999999999d", "999999d"])
def test_rows_are_not_kept_for_longer_than_there_are_years(kept: str) -> None:
    with pytest.raises(Exception, match="without the option rows are kept for ever"):
        keep_of([kept], JOBS.values())
