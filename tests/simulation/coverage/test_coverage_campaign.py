"""A small campaign, measured in worker processes, beside lists that fit it and lists that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.coverage.justified import as_toml, read_justified
from tests.simulation.coverage.reached import Measured, load, measure, measured_files
from tests.simulation.coverage.run import LIST, main

APPEND = ("storage/journal.py", "Journal.append", "never called")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a seed of each kind reached."""
    directory = tmp_path_factory.mktemp("coverage")
    empty, kept = directory / "empty.toml", directory / "kept.json"
    empty.touch()
    options = (
        "--seeds",
        "1",
        "--cluster-seeds",
        "1",
        "--first",
        "3",
        "--keep",
        str(kept),
        "--list",
        str(empty),
    )
    assert main(options) == 1
    return kept


@pytest.fixture(scope="module")
def measured(kept: Path) -> Measured:
    return measure(load(kept).hits, measured_files())


def _main(kept: Path, directory: Path, text: str) -> int:
    path = directory / "list.toml"
    path.write_text(text)
    return main(("--seeds", "0", "--cluster-seeds", "0", "--keep", str(kept), "--list", str(path)))


def test_both_kinds_of_seeds_are_measured(kept: Path, measured: Measured) -> None:
    reached = load(kept)
    assert (reached.single_seeds, reached.cluster_seeds) == (1, 1)
    assert {name.partition("/")[0] for name in reached.hits} == {
        *("storage", "backend", "replication", "queue", "cluster", "routing", "steps")
    }
    assert measured.reached > len(measured.names) / 2
    assert APPEND in measured.names
    assert APPEND not in {place.name for place in measured.unreached}


def test_a_list_that_fits_passes_and_one_without_an_entry_does_not(
    kept: Path, measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [(place.name, "a short campaign") for place in measured.unreached]
    assert _main(kept, tmp_path, as_toml(entries)) == 0
    capsys.readouterr()
    missing = measured.unreached[5]
    assert _main(kept, tmp_path, as_toml(entries[:5] + entries[6:])) == 1
    told = capsys.readouterr().out
    assert f"{missing.file}:{missing.line} {missing.function}: {missing.text}" in told
    assert "1 without a word; 0 in the list in vain" in told


def test_a_list_with_an_entry_about_what_was_reached_does_not_pass(
    kept: Path, measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [
        (APPEND, "nothing is appended"),
        *((place.name, "open: short") for place in measured.unreached),
    ]
    assert _main(kept, tmp_path, as_toml(sorted(entries))) == 1
    told = capsys.readouterr().out
    assert (
        "in the list in vain (reached, or not there any more):\n  storage/journal.py Journal.append: never called"
        in told
    )
    assert "0 without a word; 1 in the list in vain" in told


def test_what_other_sources_reached_does_not_count(kept: Path, tmp_path: Path) -> None:
    changed = tmp_path / "kept.json"
    reached = load(kept)
    assert reached.hits
    digest = reached.sources["storage/journal.py"]
    changed.write_bytes(kept.read_bytes().replace(digest.encode(), b"0" * len(digest)))
    assert not load(changed).hits


def test_the_list_names_only_what_there_is(measured: Measured) -> None:
    """What a change took away goes from the list too; whether the rest is still unreached is for a campaign to say."""
    assert not [name for name in read_justified(LIST) if name not in measured.names]
