"""The interface of a disk; `runtime/disk` has the real one, `simulation/disk` the simulated one.

Names are relative to the data directory, with '/' between directories. All calls are synchronous. A write is on disk only
after `File.sync`; a created, renamed or removed name only after `Disk.sync_directory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.model.batch import Buffer


class DiskFullError(Exception):
    """The disk is full; synced data is not affected."""


class DiskFailedError(Exception):
    """The disk returned an error. Unsynced data may be lost, so the node must stop."""


class DirectoryBusyError(Exception):
    """Another process uses the data directory."""


class WouldBlockError(Exception):
    """The bytes are not in memory; read them from a helper thread."""


class File(Protocol):
    """An open file."""

    @property
    def name(self) -> str: ...

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Writes all buffers, one after the other, from `offset` on."""

    def read_at(self, offset: int, size: int, *, block: bool = True) -> bytes:
        """Up to `size` bytes (fewer only at the end of the file).

        With `block=False` it raises `WouldBlockError` if the bytes would have to come from the device.
        """

    def allocate(self, size: int) -> None:
        """Fills the file with zeros up to `size`, so that later writes inside it need no new space."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """Returns when everything written is on disk (fdatasync)."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A directory that one process owns."""

    def lock(self) -> None:
        """Takes the directory for this process or raises `DirectoryBusyError`."""

    def open(self, name: str, *, create: bool = False) -> File:
        """Opens for reading and writing; raises `FileNotFoundError` unless it exists or `create` is set."""

    def list(self, folder: str) -> list[str]:
        """Names of the files and folders in a folder, sorted; empty where there is no such folder."""

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, name: str) -> None:
        """Removes a file or an empty folder; raises `FileNotFoundError` where there is none."""

    def make_folder(self, name: str) -> None:
        """Makes a folder unless it exists."""

    def sync_directory(self, folder: str) -> None: ...

    def free_bytes(self) -> int: ...
