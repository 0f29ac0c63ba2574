"""Maps file numbers to files, and keeps a limited number of read handles open.

A job that reads pins its files. A pinned file is neither closed nor reused, so a helper thread never reads bytes of a
file's next use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from penstock.storage.disk import Disk, File


class OpenFiles:
    """All files that positions may refer to, owned by one thread."""

    def __init__(self, disk: Disk, open_max: int) -> None:
        self._disk = disk
        self._open_max = open_max
        self._names: dict[int, str] = {}
        self.owners: dict[int, int] = {}
        """The partition of each segment; a number that is not here is a journal file's."""
        self.readable: dict[int, int] = {}
        """How far each file holds finished entries; behind that a helper thread may be writing."""
        self._handles: OrderedDict[int, File] = OrderedDict()
        self._pins: dict[int, int] = {}
        self._retired: dict[int, File] = {}

    def add(self, number: int, name: str, readable: int, owner: int | None = None) -> None:
        """Makes a journal file known, or the segment of a partition."""
        self._names[number] = name
        self.readable[number] = readable
        if owner is not None:
            self.owners[number] = owner

    def name(self, number: int) -> str:
        """The file's name, or what to call it in a message when it is gone."""
        return self._names.get(number, f"file {number}")

    def get(self, number: int) -> File:
        """A handle to read from; raises `FileNotFoundError` where there is no such file (any more)."""
        handle = self._handles.get(number)
        if handle is not None:
            self._handles.move_to_end(number)
            return handle
        if number not in self._names:
            raise FileNotFoundError(f"file {number}")
        handle = self._disk.open(self._names[number])
        self._handles[number] = handle
        if len(self._handles) > self._open_max:
            self._close_oldest()
        return handle

    def _close_oldest(self) -> None:
        newest = next(reversed(self._handles))
        for number in self._handles:
            if number not in self._pins and number != newest:
                self._handles.pop(number).close()
                return

    def pin(self, numbers: Iterable[int]) -> None:
        """Keeps files as they are until `unpin`."""
        for number in numbers:
            self._pins[number] = self._pins.get(number, 0) + 1

    def unpin(self, numbers: Iterable[int]) -> None:
        """Unpins files; the last unpin closes those that were retired meanwhile."""
        for number in numbers:
            self._pins[number] -= 1
            if not self._pins[number]:
                del self._pins[number]
                if (handle := self._retired.pop(number, None)) is not None:
                    handle.close()

    def is_pinned(self, number: int) -> bool:
        """Whether a job is reading the file."""
        return number in self._pins

    def retire(self, number: int) -> None:
        """Forgets a file; its handle is closed when no job needs it any more."""
        self._names.pop(number, None)
        self.owners.pop(number, None)
        self.readable.pop(number, None)
        handle = self._handles.pop(number, None)
        if handle is not None:
            if number in self._pins:
                self._retired[number] = handle
            else:
                handle.close()

    def close(self) -> None:
        """Closes everything."""
        for handle in [*self._handles.values(), *self._retired.values()]:
            handle.close()
        self._handles.clear()
        self._retired.clear()
