"""`python -m tests.simulation.coverage.named_tests`: runs the tests that the list names, and says which do not reach their place.

A reason in `unreached.toml` may name a test, as `tests/queue/test_table.py::test_the_gone_stay_gone`. Such a test has to reach the place
in place of a run of the simulation. Nothing of the product may be imported before this.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.simulation.coverage.justified import Justified, read_justified
from tests.simulation.coverage.places import Name, probed
from tests.simulation.coverage.probing import ProbingFinder, install
from tests.simulation.coverage.reached import measured_files

LIST = Path(__file__).with_name("unreached.toml")
ROOT = Path(__file__).parents[3]
_NAMED = re.compile(r"tests/[\w/]+\.py::\w+(?:\[[^]]*\])?")
"""With what it is parametrised with, or without: then all of it is meant."""


def named_in(reason: str) -> list[str]:
    """The tests that a reason names."""
    found: list[str] = _NAMED.findall(reason)
    return found


def missing_tests(justified: Justified, root: Path = ROOT) -> list[str]:
    """Tests that the list names and that are not there."""
    found: dict[str, set[str]] = {}
    missing: set[str] = set()
    for reason in justified.values():
        for test in named_in(reason):
            file, _, name = test.partition("::")
            if file not in found:
                path = root / file
                tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
                found[file] = {
                    node.name
                    for node in tree.body
                    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                }
                found[file] |= {
                    target.id
                    for node in tree.body
                    if isinstance(node, ast.Assign)
                    for target in node.targets
                    if isinstance(target, ast.Name)
                }
            if name.partition("[")[0] not in found[file]:
                missing.add(test)
    return sorted(missing)


class Tracer:
    """Notes which places each test reaches."""

    def __init__(self, finder: ProbingFinder, names: Mapping[str, list[Name]]) -> None:
        self._finder = finder
        self._names = names
        self.reached: dict[str, set[Name]] = {}
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """After each step of a test."""
        if report.failed:
            self.failed.append(report.nodeid)
        found: set[Name] = set()
        for name, numbers in self._finder.take().items():
            found.update(self._names[name][number] for number in numbers)
        for name in {
            report.nodeid,
            report.nodeid.partition("[")[0],
            "::".join(report.nodeid.split("::")[:2]),
        }:
            self.reached.setdefault(name, set()).update(found)


def main() -> int:
    """Returns 0 when every named test passes and reaches its places."""
    justified = read_justified(LIST)
    files = measured_files()
    names = {
        file: [place.name for place in probed(path.read_text(), file).places] for file, path in files.items()
    }
    tracer = Tracer(install(files), names)
    wanted = sorted({test for reason in justified.values() for test in named_in(reason)})
    pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *wanted], plugins=[tracer])
    wrong = [
        (name, test)
        for name, reason in justified.items()
        for test in named_in(reason)
        if name not in tracer.reached.get(test, ())
    ]
    for name, test in wrong:
        print(f"{' '.join(name)}: {test} does not reach it")
    for test in tracer.failed:
        print(f"{test} fails")
    places = sum(bool(named_in(reason)) for reason in justified.values())
    print(f"{len(wanted)} tests for {places} places; {len(wrong)} places are not reached by theirs")
    return 1 if wrong or tracer.failed else 0


if __name__ == "__main__":
    sys.exit(main())
