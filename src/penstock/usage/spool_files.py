"""The interface of a spool's files; `runtime/disk/spool_directory` has the real ones, `simulation/spool_files` the simulated
ones.

A file is memory that outlives the process. Each file has one process at a time: a living process locks its files, and the
next process can take those of one that was killed.
"""

from __future__ import annotations

from typing import Protocol


class RingFile(Protocol):
    """A file of this process, mapped into memory."""

    @property
    def memory(self) -> memoryview:
        """All of it. Other processes see at once what is written here."""

    def close(self) -> None:
        """Closes it: it stays for the next process."""

    def remove(self) -> None:
        """Closes and deletes it."""


class SpoolFiles(Protocol):
    """A directory of them."""

    @property
    def place(self) -> str:
        """Its name for people."""

    def names(self) -> list[str]:
        """Those that are there, in order; empty where there is no such directory."""

    def make(self, name: str, size: int) -> RingFile:
        """A new file of zeros, with its room reserved; raises `OSError` where the disk has none."""

    def take(self, name: str) -> RingFile | None:
        """One that another process has left; None while that one lives. Raises `OSError`."""


class RingInMemory:
    """For systems without such files: it ends with the process."""

    def __init__(self, size: int) -> None:
        self.memory = memoryview(bytearray(size))

    def close(self) -> None:
        """See `RingFile`."""
        self.memory.release()

    def remove(self) -> None:
        """See `RingFile`."""
        self.memory.release()
