"""Commands where the package was installed without the benchmarks and the tests, as from a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

# Only the package and what it depends on: no folder that has the benchmarks or the tests beside the package.
_WITHOUT_THE_CHECKOUT = """
import os, sys
package = sys.argv[1]
sys.path[:] = [package, *(path for path in sys.path if path and not os.path.isdir(os.path.join(path, "benchmarks")))]
sys.argv = ["penstock", *sys.argv[2:]]
from penstock.cli.main import main
main()
"""


def installed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the installed package, in an empty folder."""
    package = Path(penstock.__file__).parent.parent
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT_THE_CHECKOUT, str(package), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bench", "--quick"), "clone the repository and run `make bench` there"),
        (("simulate", "--bug", "list"), "clone the repository and use --bug there"),
        (("simulate", "--bug", "skip-sync", "--seed", "3"), "clone the repository and use --bug there"),
    ],
)
def test_a_command_says_what_only_a_checkout_has(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    ended = installed(tmp_path, *arguments)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert sentence in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


def test_the_simulation_runs_without_a_checkout(tmp_path: Path) -> None:
    ended = installed(tmp_path, "simulate", "--seeds", "2", "--jobs", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "every promise held" in ended.stdout
