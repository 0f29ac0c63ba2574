"""The examples for several machines: what they say is understood, and what the units run exists."""

from __future__ import annotations

import configparser
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.runtime.local_cluster.certificates import ThrowAwayAuthority

DOCS = Path(__file__).parents[2] / "docs"
CONFIGURATIONS = sorted((DOCS / "examples" / "cluster").glob("*.toml"))
UNITS = sorted((DOCS / "examples" / "systemd").glob("*.service"))


def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    command = [sys.executable, "-m", "penstock.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.stem)
def test_a_configuration_is_good_for_its_role(file: Path, tmp_path: Path) -> None:
    """With certificates and the secret where the example says they are: `check-config` looks at them."""
    files = ThrowAwayAuthority(tmp_path).files("cluster")
    assert [one.name for one in files] == ["cluster.pem", "cluster.key", "ca.pem"]
    placed = tmp_path / file.name
    placed.write_text(file.read_text().replace("/etc/penstock/", f"{tmp_path}/"))
    without = penstock("check-config", str(placed), "--role", file.stem)
    assert (without.returncode, "cluster.secret_file: " in without.stderr) == (1, True), without.stderr
    (tmp_path / "cluster-secret").write_text("3 espressi and a glass of water\n")
    done = penstock("check-config", str(placed), "--role", file.stem)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.stem)
def test_what_a_unit_runs_exists_and_is_told_of_an_example(file: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as its manual says, to keep upper case
    unit.read(file)
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/penstock")
    at = arguments.index("--config")
    assert DOCS / "examples" / "cluster" / Path(arguments[at + 1]).name in CONFIGURATIONS
    done = penstock(*arguments[:at], "--help")
    assert done.returncode == 0, done.stderr
    assert "--config" in done.stdout
