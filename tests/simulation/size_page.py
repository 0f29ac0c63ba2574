"""The table of sizes as docs/simulation.md prints it; a test keeps the page the same.

`python -m tests.simulation.size_page docs/simulation.md` writes it into the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.simulation.sizes.node_sizes import OPTIONS
from penstock.simulation.sizes.small_sizes import SIZES
from penstock.simulation.sizes.usage_sizes import USAGE

START = "<!-- sizes -->"
END = "<!-- end of sizes -->"


def table_of_sizes() -> str:
    """The table, in Markdown."""
    rows = ["| where | size | small values | what it separates |", "|---|---|---|---|"]
    for size in (*SIZES, *USAGE):
        values = ", ".join(f"{value:,}" for value in size.small)
        rows.append(f"| `{size.module}` | `{size.name}` | {values} | {size.separates} |")
    for option in OPTIONS:
        values = ", ".join(f"{value:,}" for value in option.small)
        rows.append(f"| storage options | `{option.name}` | {values} | {option.separates} |")
    return "\n".join(rows)


def write(page: Path) -> None:
    """Puts the table into the page, between its marks."""
    text = page.read_text()
    before, after = text[: text.index(START)], text[text.index(END) :]
    page.write_text(f"{before}{START}\n{table_of_sizes()}\n{after}")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
