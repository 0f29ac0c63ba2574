"""Which files a partition needs: those in which something lives in the table of messages or in the retained log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge

from penstock.queue.partition import Partition
from penstock.queue.state.table import Place


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


def living_places(partition: Partition, journal: set[int], sparse: set[int]) -> Iterator[Place]:
    """Where everything lies that lives in the files, and what it is of the partition, which may change meanwhile.

    What the log holds comes in the order of the log, so that its copies lie in that order too: then a reader of the
    log reads long stretches of one file.
    """
    table, log = partition.table, partition.log
    if log is None:
        yield from table.living_places(journal | sparse)
        return
    yield from merge(table.living_places(journal), log.places_in(journal))
    yield from table.living_places(sparse)


def living_positions(partition: Partition) -> list[int]:
    """The positions of everything that lives, in rising order; for those who look at all of it."""
    places = living_places(partition, files_of(partition), set())
    return sorted({position for position, _, _ in places if position >= 0})


def is_there(partition: Partition, place: Place) -> bool:
    """Whether what was found at a place still lives there."""
    position, number, piece = place
    if piece < 0:
        return partition.log is not None and partition.log.position_of(number) == position
    chunk = partition.table.chunks.get(number)
    return chunk is not None and chunk.positions[piece] == position and chunk.is_living(piece)


def relocate(partition: Partition, places: Iterable[Place], moved: Mapping[int, int]) -> None:
    """Whatever still lives at an old position now lies at the new one."""
    for old, number, piece in places:
        new = moved.get(old)
        if new is None:
            continue
        if piece >= 0:
            partition.table.relocate(number, piece, old, new)
        elif partition.log is not None:
            partition.log.relocate(number, old, new)
