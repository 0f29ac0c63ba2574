"""Journal files: their names, how a file is prepared ahead, and how a vacated one is put aside.

A file is ready when it has its full size, with zeros or the bytes of an earlier use, and its name is on disk. Bytes of an
earlier use have that use's file number, so they are never taken for entries of the current one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from penstock.storage.disk import Disk, DiskFullError, File
from penstock.storage.job import Job

FOLDER = "journal"
_NAME = re.compile(r"(\d{10})\.journal")
_SPARE = re.compile(r"spare-\d{10}")
_UNFINISHED = re.compile(r"new-\d{10}")


class FileNumbers:
    """The rising counter for journal files and segments; any thread may take numbers."""

    def __init__(self, first: int) -> None:
        self._count = itertools.count(first)

    def take(self) -> int:
        """A number greater than all before (`next` of `itertools.count` is one step, so no lock is needed)."""
        return next(self._count)


class JournalFile:
    """An open journal file."""

    __slots__ = ("capacity", "file", "name", "number", "used")

    def __init__(self, number: int, file: File, used: int = 0) -> None:
        self.number = number
        self.name = journal_name(number)
        self.file = file
        self.capacity = file.size()
        self.used = used


def journal_name(number: int) -> str:
    """The path of the journal file with that number."""
    return f"{FOLDER}/{number:010}.journal"


def spare_name(number: int) -> str:
    """The path of a vacated file that waits for a new number."""
    return f"{FOLDER}/spare-{number:010}"


def list_journal(disk: Disk) -> tuple[list[int], list[str], list[str]]:
    """The numbers of the journal files, the names of the spares, and of those that were never finished."""
    numbers, spares, unfinished = [], [], []
    for name in disk.list(FOLDER):
        if match := _NAME.fullmatch(name):
            numbers.append(int(match[1]))
        elif _SPARE.fullmatch(name):
            spares.append(f"{FOLDER}/{name}")
        elif _UNFINISHED.fullmatch(name):
            unfinished.append(f"{FOLDER}/{name}")
    return numbers, spares, unfinished


def prepare(disk: Disk, number: int, spare: str | None, size: int, free_bytes_min: int) -> JournalFile:
    """Makes the file of that number ready, from a spare or new; raises `DiskFullError` without leaving a trace."""
    name = journal_name(number)
    if spare is None:
        if disk.free_bytes() < size + free_bytes_min:
            raise DiskFullError(f"no room for another journal file of {size} bytes")
        spare = f"{FOLDER}/new-{number:010}"
        file = disk.open(spare, create=True)
        try:
            file.allocate(size)
        except DiskFullError:
            disk.remove(spare)
            raise
        finally:
            file.close()
    disk.rename(spare, name)
    disk.sync_directory(FOLDER)
    return JournalFile(number, disk.open(name))


class PrepareJob(Job):
    """Prepares the next journal file, so that the journal need not wait for it."""

    def __init__(self, disk: Disk, number: int, spare: str | None, size: int, free_bytes_min: int) -> None:
        self._disk = disk
        self._number = number
        self.spare = spare
        self._size = size
        self._free_bytes_min = free_bytes_min
        self.result: JournalFile | None = None

    def _work(self) -> None:
        self.result = prepare(self._disk, self._number, self.spare, self._size, self._free_bytes_min)


class RecycleJob(Job):
    """Puts vacated journal files aside as spares, and removes surplus ones."""

    def __init__(self, disk: Disk, keep: Sequence[int], remove: Sequence[int]) -> None:
        self._disk = disk
        self._keep = keep
        self._remove = remove
        self.spares: list[str] = []

    def _work(self) -> None:
        for number in self._keep:
            self._disk.rename(journal_name(number), spare_name(number))
        for number in self._remove:
            self._disk.remove(journal_name(number))
        self._disk.sync_directory(FOLDER)
        self.spares = [spare_name(number) for number in self._keep]
