"""Compares two trees of the source within one run: `python -m benchmarks.compare OTHER_TREE --only single --rounds 6`.

The rounds alternate between the trees, because the speed of a machine changes within minutes. OTHER_TREE is a directory with `src`
and `benchmarks`, for instance one that `git worktree add` made; the tree from which the command runs is the new one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.comparison import Comparison, Measured, compared, comparison_table
from benchmarks.report import decode_report

HERE = Path(__file__).resolve().parent.parent
ROUND_SECONDS_AT_MOST = 900
PLAIN_WIDTH = 160


def measured(tree: Path, arguments: Sequence[str], data: Path) -> Measured:
    """One round of a tree: its figures by name."""
    with tempfile.NamedTemporaryFile(suffix=".json", dir=data) as output:
        command = [
            sys.executable,
            "-c",
            "from penstock.cli.main import main; main()",
            "bench",
            *arguments,
            "--data",
            str(data),
            "--output",
            output.name,
        ]
        environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
        ended = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=ROUND_SECONDS_AT_MOST,
            check=False,
        )
        if ended.returncode:
            raise typer.BadParameter(
                f"the benchmarks of {tree} ended with {ended.returncode}:\n{ended.stderr}"
            )
        report = decode_report(Path(output.name).read_bytes())
    return {line.figure.name: line.figure for line in report.lines}


def main(
    other: Annotated[Path, typer.Argument(help="The tree to compare with.", exists=True, file_okay=False)],
    only: Annotated[list[str], typer.Option(help="Section of `penstock bench`; may be repeated.")],
    rounds: Annotated[int, typer.Option(help="Rounds of each tree.", min=2)] = 5,
    quick: Annotated[bool, typer.Option(help="Short rounds.")] = True,
    data: Annotated[Path, typer.Option(help="The directory whose disk is used.")] = HERE,
) -> None:
    """Run the same sections in two trees, alternately, and say which figures differ by more than the rounds do."""
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    arguments = [word for section in only for word in ("--only", section)] + (["--quick"] if quick else [])
    old: list[Measured] = []
    new: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="penstock-compare-", dir=data) as directory:
        for number in range(rounds):
            # Each tree goes first in half of the rounds: the first one finds the colder machine.
            order = [(other.resolve(), old), (HERE, new)]
            for tree, rounds_of_tree in order if number % 2 == 0 else reversed(order):
                rounds_of_tree.append(measured(tree, arguments, Path(directory)))
            console.print(f"round {number + 1} of {rounds} is done", style="dim")
    comparisons: list[Comparison] = compared(old, new)
    console.print(comparison_table(comparisons))


if __name__ == "__main__":
    typer.run(main)
