"""A page of the guide, typed as its reader would: its commands and its Python are run, and what they print compared."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

URL = "penstock://127.0.0.1:9326"
SECONDS = 300
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}")


class GuidePage:
    """One page of `docs/guide`."""

    def __init__(self, name: str) -> None:
        self.path = Path(__file__).parents[2] / "docs" / "guide" / name

    def blocks(self, kinds: str) -> list[tuple[str, int, str]]:
        """The blocks of some kinds: kind, line on the page, text."""
        text = self.path.read_text(encoding="utf-8")
        found = re.finditer(rf"^```({kinds})\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        return [(one[1], text.count("\n", 0, one.start(2)), one[2]) for one in found]

    async def type_all(self, url: str) -> int:
        """Runs every command and every Python block in order; fails where the page says otherwise. How many blocks."""
        namespace: dict[str, object] = {}
        found = self.blocks("console|python")
        for kind, line, text in found:
            if kind == "console":
                for command, expected in commands(text):
                    printed = run(command, url)
                    assert matches(expected, printed), f"{command}\n{printed}\nis not\n{expected}"
                continue
            tree = ast.increment_lineno(ast.parse(text.replace(URL, url)), line)
            code = compile(tree, str(self.path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, namespace)
            if inspect.isawaitable(result):
                await result
        return len(found)

    def run_block(self, kind: str, here: str, there: str) -> None:
        """Runs the one block of a kind, with another address put in."""
        ((_, line, text),) = self.blocks(kind)
        code = compile(
            ast.increment_lineno(ast.parse(text.replace(here, there)), line), str(self.path), "exec"
        )
        exec(code, {})


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a block, and what the page says it prints."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert parts[0] == "", "a block begins with a command"
    found = [part.partition("\n") for part in parts[1:]]
    return [(command, expected) for command, _, expected in found]


def run(command: str, url: str, seconds: float = SECONDS) -> str:
    """By a shell; what it prints."""
    variables = {**os.environ, "PENSTOCK_URL": url, "COLUMNS": "120"}
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def matches(expected: str, printed: str) -> bool:
    """Whether it is what the page says; times differ, and … stands for anything on a line."""
    pattern = re.escape(_TIME.sub("TIME", expected)).replace("…", r"[^\n]*?")
    # What stands for a number may be wider or narrower than it.
    pattern = re.sub(r"(\\ )+(?=\[\^)|(?<=\*\?)(\\ )+", r"\\s*", pattern)
    return re.fullmatch(pattern, _TIME.sub("TIME", printed)) is not None
