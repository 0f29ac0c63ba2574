"""The table of producers in the form of a snapshot."""

from __future__ import annotations

from typing import NamedTuple


class ProducersImage(NamedTuple):
    """A copy of the table, for a snapshot."""

    marks: tuple[int, int, int]  # the first free row, rows in use, the first free slot
    columns: list[bytes]
    duplicates: list[tuple[int, bytes]]
