"""A job: the source of its rows, its tables, and the functions that fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.columnar.table import Table
from penstock.pipeline.numbers import Gap
from penstock.pipeline.warehouse.table import WarehouseTable, column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Tables = Mapping[str, "DataFrame"]
"""Rows by the name of their table."""


class Reader(Protocol):
    """What a roll-up reads of the warehouse."""

    def all_rows(self, table: WarehouseTable) -> DataFrame:
        """Of a table, however it is filled."""

    def new_rows(self, table: WarehouseTable) -> DataFrame:
        """Of a table filled by batches: the rows of batches that were not rolled up yet."""

    def old_rows(self, table: WarehouseTable) -> DataFrame:
        """The rows of batches that were."""

    def new_days(self, table: WarehouseTable) -> list[date]:
        """The days that those have rows of."""


class Rolled(NamedTuple):
    """The result of a roll-up."""

    days: Mapping[str, tuple[list[date], DataFrame]] = {}
    """By table: the days to replace, and their rows."""
    added: Mapping[str, DataFrame] = {}
    """By table that roll-ups add to, as one batch: the rows."""
    whole: Mapping[str, DataFrame] = {}
    """By table: all its rows. They are replaced last, in this order."""
    kept: tuple[DataFrame, ...] = ()
    """Cached data, to be dropped when all is written."""


class ServerFacts(NamedTuple):
    """Facts about the server that a job may need besides its rows."""

    now_us: int = 0
    queues: tuple[Mapping[str, Any], ...] = ()
    """Of each queue: name, limits and fill, as the server says; empty where none was asked."""
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    gaps: tuple[Gap, ...] = ()
    missing_of: Callable[[Iterable[tuple[str, int]]], frozenset[int]] | None = None
    """Those of these queues, by name and id, that the server certainly no longer has; None if no server could be asked."""


@dataclass(frozen=True)
class Job:
    """One job. `batch` makes rows from a micro-batch of new rows; `roll` is run now and then, and at the end."""

    name: str
    sentence: str
    queue: str
    rows: Table
    writer: str
    """The column that, with `number`, names a row for ever."""
    tables: tuple[WarehouseTable, ...]
    batch: Callable[[DataFrame], Tables]
    roll: Callable[[Reader, ServerFacts], Rolled]
    wants_queues: bool = False
    """Whether the server is asked for limits and fill of its queues before a roll-up."""
    rolled_by_addition: frozenset[str] = field(default_factory=frozenset)
    """Tables that roll-ups add to, not batches."""

    state: str | None = None
    """The table that a roll-up continues from, and replaces last: once it is there, the roll-up is done."""

    renew: Callable[[Reader, ServerFacts], Tables] | None = None
    """Makes tables of few rows that are replaced whole, and that time and the server change though no row comes: from what
    was rolled up, and never the state."""

    @property
    def group(self) -> str:
        """Its consumer group: the description of the log shows there how far its runs have come."""
        return f"pipeline-{self.name}"

    @property
    def gaps(self) -> WarehouseTable:
        """Its table of rows that are missing."""
        return next(table for table in self.tables if table.name.endswith("_gaps"))

    @property
    def batch_tables(self) -> tuple[WarehouseTable, ...]:
        """Those that every batch is added to."""
        return tuple(
            table
            for table in self.tables
            if table.filling == "batches" and table.name not in self.rolled_by_addition
        )

    def table(self, name: str) -> WarehouseTable:
        """One of its tables."""
        return next(table for table in self.tables if table.name == name)


def gap_table(name: str, writer: str, writer_meaning: str) -> WarehouseTable:
    """Rows that the writers numbered and that never arrived."""
    return WarehouseTable(
        name,
        "Rows that never reached this job: lost on the way to the log, or removed from the log before they were read. Their numbers are "
        "missing between others.",
        "whole",
        (
            column(writer, "string", writer_meaning),
            column("first_missing", "int64", "The first number that is missing."),
            column("last_missing", "int64", "The last one before the next that is there."),
            column("missing", "int64", "How many rows that is."),
        ),
    )
