"""A table: named columns of plain kinds, which a reader recognizes without other information."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["timestamp", "string", "int8", "int32", "int64"]
"""`timestamp`: microseconds since 1970, UTC."""


class Column(NamedTuple):
    """One column."""

    name: str
    kind: Kind
    optional: bool = False


class Table(NamedTuple):
    """The columns of a kind of row, in their order. New ones are added at the end, and are optional."""

    name: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in their order."""
        return tuple(column.name for column in self.columns)
