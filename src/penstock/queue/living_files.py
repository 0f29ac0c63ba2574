"""Which journal files and segments a partition still needs, for its message table or its retained log."""

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
    """Files that one of the two tables no longer uses. The other one may still use them: ask `lives_in`."""
    emptied = partition.table.emptied
    log = partition.log
    if log is not None and log.emptied:
        emptied = emptied + log.emptied
        log.emptied = []
    if emptied:
        partition.table.emptied = []
    return emptied


def living_places(partition: Partition, journal: set[int], sparse: set[int]) -> Iterator[Place]:
    """The positions of everything that lives in the files, and which table of the partition it belongs to.

    Positions of the log come in the order of the log, so that the copies have that order too. Then a reader of the log
    reads long parts of one file. The partition may change between two items.
    """
    table, log = partition.table, partition.log
    if log is None:
        yield from table.living_places(journal | sparse)
        return
    yield from merge(table.living_places(journal), log.places_in(journal))
    yield from table.living_places(sparse)


def living_positions(partition: Partition) -> list[int]:
    """The positions of everything that lives, in rising order."""
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
    """Notes that whatever still lives at the old position was copied to the new one."""
    for old, number, piece in places:
        new = moved.get(old)
        if new is None:
            continue
        if piece >= 0:
            partition.table.relocate(number, piece, old, new)
        elif partition.log is not None:
            partition.log.relocate(number, old, new)
