"""Every size, count and time of the product that separates two paths through the code, with small values for it.

With the values of production a run of the simulation takes only one path: a state never has a second part, a table never
forgets, a page is never full. `small_sizes` applies random values for one run. What a size separates is described in a few
words; docs/simulation.md contains this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


def _nothing(value: int) -> Mapping[str, Any]:
    return {}


class Size(NamedTuple):
    """A constant of a module."""

    module: str
    """Without `penstock.` in front."""
    name: str
    small: tuple[int, ...]
    separates: str
    imported_by: tuple[str, ...] = ()
    """Modules that have the constant, or what follows from it, under the same name."""
    follows: Callable[[int], Mapping[str, Any]] = _nothing
    """Other constants of the module that are made from it."""
    together: tuple[tuple[str, int], ...] = ()
    """Sizes that have to be small as well where this one is."""


Row = tuple[str, tuple[int, ...], str]


def sizes_of(module: str, *rows: Row) -> tuple[Size, ...]:
    """Sizes that no other module imports and from which nothing else follows."""
    return tuple(Size(module, *row) for row in rows)


class OptionSize(NamedTuple):
    """A field of `StorageOptions`, in addition to every scenario's choice for it."""

    name: str
    small: tuple[int, ...]
    separates: str
