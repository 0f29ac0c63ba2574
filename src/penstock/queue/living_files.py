"""Which files a partition needs: those in which something lives in the table of messages or in the retained log."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from penstock.queue.partition import Partition


def files_of(partition: Partition) -> set[int]:
    """All files that the partition needs."""
    if partition.log is None:
        return set(partition.table.files)
    return {*partition.table.files, *partition.log.files}


def lives_in(partition: Partition, file: int) -> bool:
    """Whether the partition needs the file."""
    return file in partition.table.files or (partition.log is not None and file in partition.log.files)


def take_emptied(partition: Partition) -> list[int]:
    """Files that something has left for good; whether something else lives there is asked with `lives_in`."""
    emptied = partition.table.emptied
    log = partition.log
    if log is not None and log.emptied:
        emptied = emptied + log.emptied
        log.emptied = []
    if emptied:
        partition.table.emptied = []
    return emptied


def living_positions(partition: Partition, journal: set[int], sparse: set[int]) -> Iterator[int]:
    """Positions of everything that lives in the files, maybe twice in a row.

    What the log holds comes in the order of the log, so that its copies lie in that order too: then a reader of the
    log reads long stretches of one file.
    """
    table, log = partition.table, partition.log
    if log is None:
        yield from table.living_positions(journal | sparse)
        return
    yield from merge(table.living_positions(journal), log.positions_in(journal))
    yield from table.living_positions(sparse)


def relocate(partition: Partition, moved: dict[int, int]) -> None:
    """Whatever still lives at an old position now lies at the new one."""
    partition.table.relocate(moved)
    if partition.log is not None:
        partition.log.relocate(moved)
