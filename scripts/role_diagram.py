"""Writes the diagram of a node's roles into docs/architecture.md, from the table of transitions.

Run it with `make roles` after a change of `replication/primary_secondary/core/roles.py`. A test fails while it is not done.
"""

from __future__ import annotations

from pathlib import Path

from penstock.replication.primary_secondary.core.roles import diagram

PAGE = Path(__file__).parents[1] / "docs/architecture.md"
BEGIN, END = "<!-- roles -->", "<!-- end of roles -->"


def page() -> str:
    """The page with the diagram as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n```mermaid\n{diagram()}\n```\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
