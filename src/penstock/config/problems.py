"""The problems of a configuration: all of them at once, each with its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One problem: its place, the wrong value, and what would be right."""

    source: str
    """A file name, an environment variable or a flag."""
    field: str
    """`table.key`, or empty where the whole source is unreadable."""
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


class ConfigurationError(Exception):
    """The configuration cannot be used; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems
