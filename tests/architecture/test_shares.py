"""How the tests are shared among processes: what the lists name is there, and every test has its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ports, shares

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [*shares.WHOLE, *shares.SINGLE, *shares.FIRST])
def test_what_is_named_is_there(name: str) -> None:
    assert (ROOT / name).is_dir() if name.endswith("/") else (ROOT / name).is_file()


@pytest.mark.parametrize(
    ("nodeid", "share"),
    [
        ("tests/pipeline/test_sink.py::test_a", "tests/pipeline/"),
        ("tests/pipeline/warehouse/test_expiry.py::test_b[x]", "tests/pipeline/"),
        ("tests/queue/test_numbers.py::test_c", "tests/queue/test_numbers.py"),
        ("tests/queue/test_numbers.py::test_d[a::b]", "tests/queue/test_numbers.py"),
        (
            "tests/simulation/test_planted_bugs.py::test_e[f]",
            "tests/simulation/test_planted_bugs.py::test_e[f]",
        ),
    ],
)
def test_tests_that_share_something_stay_together(nodeid: str, share: str) -> None:
    assert shares.share(nodeid) == share


def test_there_are_processes_for_any_number_of_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for processors in (1, 2, 64):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, count=processors: set(range(count)))
        counts.append(shares.processes())
    assert counts == [2, 4, shares.MOST_PROCESSES]


def test_a_port_is_of_the_range_of_this_process_and_not_given_twice_in_a_row() -> None:
    given = [ports.free_port() for _ in range(20)]
    assert len(set(given)) == len(given)
    (own,) = [one for one in ports.RANGES if given[0] in one]
    assert set(given) <= set(own)
    assert int(ports.base_port()) in own
    assert int(ports.base_port()) not in given
