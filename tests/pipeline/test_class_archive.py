"""What `penstock pipeline prepare` writes: Java uses it, notices where it is of another Spark, and never finds half of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.pipeline import class_archive
from penstock.pipeline.class_archive import archive_options, archive_path, quoted, write_archive
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.java import find_java
from penstock.pipeline.preparing import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where archives are, in this test."""
    monkeypatch.setattr(class_archive, "_places", lambda: [tmp_path / "first", tmp_path / "second"])
    return tmp_path


def an_archive(place: Path, java_home: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    path = place / class_archive._file_name(java_home)
    path.write_bytes(b"classes")
    return path


def test_java_uses_it(spark: SparkSession) -> None:
    there = archive_path(find_java())
    if there is None:
        pytest.skip("`penstock pipeline prepare` was not run: `make test` does so")
    assert prepare() == (there, False)
    gateway: Any = spark.sparkContext._gateway
    in_memory = Path(f"/proc/{gateway.proc.pid}/maps").read_text()
    assert f"{there}\n" in in_memory, "one that does not fit is let go of at once"


def test_another_java_has_another_and_a_spark_that_is_installed_anew_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java, other, spark = place / "java-17", place / "java-21", place / "spark"
    for home in (java, other):
        (home / "lib").mkdir(parents=True)
        (home / "lib" / "modules").write_bytes(b"")
    (spark / "jars").mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(spark))
    assert archive_options(java) == ""
    written = an_archive(place / "second", java)
    assert archive_path(java) == written
    assert archive_path(other) is None
    assert archive_options(java).startswith(f"-XX:SharedArchiveFile={written} ")
    (spark / "jars" / "another.jar").write_bytes(b"")
    assert archive_path(java) is None


def test_options_that_somebody_has_given_stay(place: Path) -> None:
    java = find_java()
    an_archive(place / "first", java)
    assert archive_options(java, "-Xlog:gc") != ""
    assert archive_options(java, "-XX:SharedArchiveFile=mine.jsa") == ""
    assert archive_options(java, class_archive.RECORDING) == ""


@pytest.mark.parametrize(
    ("option", "word"),
    [("-Xmx1g", "-Xmx1g"), ("-Da=/my files", '"-Da=/my files"'), ('-Da="b"', r'"-Da=\"b\""')],
)
def test_an_option_is_one_word(option: str, word: str) -> None:
    assert quoted(option) == word


def test_what_java_cannot_write_leaves_nothing_and_what_was_there(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = place / "first"
    before = an_archive(first, place / "elsewhere")
    monkeypatch.setattr(class_archive, "_silence", lambda session: None)  # others use it
    with pytest.raises(PipelineError, match=r"Java could not write .*\.jsa: "):
        write_archive(spark, find_java())  # which was not told to record what it loads
    assert list(first.iterdir()) == [before]


def test_where_no_place_can_be_written_each_is_named(spark: SparkSession, place: Path) -> None:
    for name in ("first", "second"):
        (place / name).write_text("a file")
    with pytest.raises(PipelineError, match=r"none of .*first, .*second can be written.*XDG_CACHE_HOME"):
        write_archive(spark, find_java())
