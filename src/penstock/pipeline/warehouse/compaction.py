"""Compaction: directories of many small batches become directories of one large one.

A span has 64 batches and a block 64 spans. When all batches of one are there and need not be distinguished any more, its
rows are written again and the directory is replaced in one step (`swapping`), so that no reader ever sees a row twice. If
it is killed on the way, the old directory stays until the new one replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.warehouse import paths
from penstock.pipeline.warehouse.swapping import being_replaced, staging_place, swap
from penstock.pipeline.warehouse.table import WarehouseTable
from penstock.pipeline.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE_BYTES = 128 << 20
"""How large a file may become before there are two."""


class Compacted(NamedTuple):
    """What was done to a table."""

    directories_before: int
    directories_after: int

    def and_then(self, other: Compacted) -> Compacted:
        """Both together."""
        return Compacted(
            self.directories_before + other.directories_before,
            self.directories_after + other.directories_after,
        )


def compact(
    warehouse: Warehouse, table: WarehouseTable, through: int, *, everything: bool = False
) -> Compacted:
    """Compacts only directories with batches up to `through`. `everything`: no batch is added meanwhile, so a directory that
    is not full yet may be replaced too.
    """
    done = Compacted(0, 0)
    for directory in whole_directories(warehouse, table, through, everything=everything):
        done = done.and_then(_replace(warehouse, table, directory, through))
    return done


def whole_directories(
    warehouse: Warehouse, table: WarehouseTable, through: int, *, everything: bool
) -> list[str]:
    """The blocks and spans that may be replaced: all of their batches are there, or none is added meanwhile.

    Not one whose replacement was interrupted: the next run completes that, and would restore its rows.
    """
    found: list[str] = []
    taken = being_replaced(warehouse.files, table.name)
    directory = paths.generation_directory(table.name, warehouse.generation)
    for number, block in paths.numbers_of(warehouse.files.directories(directory), "block").items():
        if everything or (number + 1) * paths.SPAN_BATCHES * paths.BLOCK_SPANS <= through + 1:
            found.append(block)
            continue
        spans = paths.numbers_of(warehouse.files.directories(block), "span")
        found += [
            span
            for span_number, span in spans.items()
            if (span_number + 1) * paths.SPAN_BATCHES <= through + 1
        ]
    return [
        path
        for path in found
        if not any(f"{path}/".startswith(f"{other}/") or other.startswith(f"{path}/") for other in taken)
    ]


def rewrite(
    warehouse: Warehouse,
    table: WarehouseTable,
    directory: str,
    through: int,
    kept: Callable[[DataFrame], DataFrame],
) -> bool:
    """Replaces a span or a block by one that has only the rows that are kept; False: that is all of them."""
    batches = _batches_in(warehouse, directory)
    if not batches or max(batches) > through:
        return False
    rows = warehouse.read_directories(table, list(batches.values()))
    left = kept(rows)
    if left.count() == rows.count():
        return False
    _write_anew(warehouse, table, directory, batches, left)
    return True


def _replace(warehouse: Warehouse, table: WarehouseTable, directory: str, through: int) -> Compacted:
    """One directory, a span or a block, by another that holds all of it as its last batch."""
    batches = _batches_in(warehouse, directory)
    if len(batches) < 2 or max(batches) > through:
        return Compacted(0, 0)
    _write_anew(
        warehouse, table, directory, batches, warehouse.read_directories(table, list(batches.values()))
    )
    return Compacted(len(batches), 1)


def _write_anew(
    warehouse: Warehouse, table: WarehouseTable, directory: str, batches: dict[int, str], rows: DataFrame
) -> None:
    inside = batches[max(batches)].removeprefix(directory)
    staged = staging_place(table.name, "compacted")
    size = warehouse.files.size_bytes(directory)
    warehouse.write(table, rows, staged + inside, 1 + size // FILE_BYTES)
    _check(warehouse, table, rows.count(), staged + inside, directory)
    swap(warehouse.files, staged, directory)


def _batches_in(warehouse: Warehouse, directory: str) -> dict[int, str]:
    if paths.value_of(directory, "span") is not None:
        return paths.numbers_of(warehouse.files.directories(directory), "batch_id")
    found: dict[int, str] = {}
    for span in warehouse.files.directories(directory):
        found |= paths.numbers_of(warehouse.files.directories(span), "batch_id")
    return found


def _check(warehouse: Warehouse, table: WarehouseTable, before: int, staged: str, directory: str) -> None:
    """A table that is whole but in small files is better than one that lacks rows."""
    after = warehouse.spark.read.schema(table.file_schema()).parquet(warehouse.files.uri(staged)).count()
    if after != before:
        warehouse.files.remove(staged)
        raise PipelineError(
            f"{directory} has {before:,} rows and {after:,} after compaction; it was left as it was"
        )
