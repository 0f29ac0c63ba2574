"""Where the server's time goes: runs it under cProfile and names the functions that took most of it.

Only the thread that owns the queues is seen, and everything is slower than without: read shares, not times.
"""

from __future__ import annotations

import io
import pstats
from pathlib import Path

_FUNCTIONS = 30


def profiled(file: Path | None) -> list[str]:
    """The interpreter's arguments that make it write a profile when it ends."""
    return ["-m", "cProfile", "-o", str(file)] if file is not None else []


def top_functions(file: Path, most: int = _FUNCTIONS) -> str:
    """The functions with the most time of their own, as a table."""
    if not file.exists():
        return "the server left no profile"
    text = io.StringIO()
    statistics = pstats.Stats(str(file), stream=text)
    statistics.strip_dirs().sort_stats("tottime").print_stats(most)
    lines = text.getvalue().splitlines()
    start = next((index for index, line in enumerate(lines) if "tottime" in line), 0)
    return "\n".join(line for line in lines[start:] if line.strip())
