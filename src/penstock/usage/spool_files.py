"""What a spool asks of the files it lives in; `runtime.spool_directory` has the real ones, `simulation.spool_files` their twins.

A file is memory that outlives the process. Whoever has a file has it alone: a process that lives keeps its files from others, and
those of a process that was killed can be taken by the next one.
"""

from __future__ import annotations

from typing import Protocol


class RingFile(Protocol):
    """A file that this process has, mapped into memory."""

    @property
    def memory(self) -> memoryview:
        """All of it. What is written here is in the file at once, as far as other processes can see."""

    def close(self) -> None:
        """Lets go of it: it stays for the next process."""

    def remove(self) -> None:
        """Lets go of it, and it is no more."""


class SpoolFiles(Protocol):
    """A directory of them."""

    @property
    def place(self) -> str:
        """What people call it."""

    def names(self) -> list[str]:
        """Those that are there, in order; empty where there is no such directory."""

    def make(self, name: str, size: int) -> RingFile:
        """A new file of zeros, with its room reserved; raises `OSError` where the disk has none."""

    def take(self, name: str) -> RingFile | None:
        """One that another process has left; None while that one lives. Raises `OSError`."""


class RingInMemory:
    """In place of a file where there can be none: it ends with the process."""

    def __init__(self, size: int) -> None:
        self.memory = memoryview(bytearray(size))

    def close(self) -> None:
        """See `RingFile`."""
        self.memory.release()

    def remove(self) -> None:
        """See `RingFile`."""
        self.memory.release()
