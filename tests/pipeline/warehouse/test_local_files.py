"""Files of this computer: what is missing is no error, and a checksum goes with its file."""

from __future__ import annotations

from pathlib import Path

from penstock.pipeline.warehouse import local_files


def test_names_in_a_directory_and_which_are_directories(tmp_path: Path) -> None:
    (tmp_path / "span=1").mkdir()
    (tmp_path / "rows.parquet").write_text("rows")
    assert local_files.listed(str(tmp_path)) == [("rows.parquet", False), ("span=1", True)]
    assert local_files.listed(str(tmp_path / "missing")) == []
    assert local_files.listed(str(tmp_path / "rows.parquet")) == []


def test_the_size_of_all_files_below_without_checksums(tmp_path: Path) -> None:
    inner = tmp_path / "day=2026-05-01"
    inner.mkdir()
    (inner / "rows.parquet").write_bytes(bytes(100))
    (inner / ".rows.parquet.crc").write_bytes(bytes(8))
    (tmp_path / "more.parquet").write_bytes(bytes(11))
    assert local_files.size_bytes(str(tmp_path)) == 111
    assert local_files.size_bytes(str(tmp_path / "missing")) == 0


def test_removing_a_file_takes_its_checksum_along(tmp_path: Path) -> None:
    for name in ("0.json", ".0.json.crc", "1.json"):
        (tmp_path / name).write_text("{}")
    local_files.remove(f"{tmp_path}/0.json")
    local_files.remove(f"{tmp_path}/0.json")  # it is gone already
    assert [path.name for path in tmp_path.iterdir()] == ["1.json"]


def test_removing_a_directory_with_all_in_it(tmp_path: Path) -> None:
    (tmp_path / "table" / "gen=g1").mkdir(parents=True)
    (tmp_path / "table" / "gen=g1" / "rows.parquet").write_text("rows")
    local_files.remove(f"{tmp_path}/table")
    assert list(tmp_path.iterdir()) == []


def test_small_files_are_replaced_whole(tmp_path: Path) -> None:
    path = f"{tmp_path}/_state/usage/rolling.json"
    assert local_files.read_text(path) is None
    local_files.write_text(path, "first")
    local_files.write_text(path, "second")
    assert local_files.read_text(path) == "second"
    assert [one.name for one in Path(path).parent.iterdir()] == ["rolling.json"]
