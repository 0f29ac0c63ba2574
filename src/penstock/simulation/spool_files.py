"""The files of spools on a simulated host: the counterpart of `runtime.disk.spool_directory`.

A write into mapped memory is in the file at once, and a killed process loses nothing. A process owns its files until it is
killed.
"""

from __future__ import annotations

from penstock.simulation.disk import SimulatedDisk
from penstock.storage.disk import DiskFullError

FOLDER = "usage"


class SimulatedRingFile:
    """See `penstock.usage.spool_files.RingFile`."""

    def __init__(self, files: SimulatedSpoolFiles, name: str, memory: memoryview) -> None:
        self._files = files
        self._name = name
        self.memory = memory

    def close(self) -> None:
        self.memory.release()
        self._files.let_go(self._name)

    def remove(self) -> None:
        self._files.disk.remove(f"{FOLDER}/{self._name}")
        self.close()


class SpoolHost:
    """A machine with a directory of spools that several processes use, one after the other or at the same time."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.taken: set[str] = set()
        """The files of living processes."""


class SimulatedSpoolFiles:
    """See `penstock.usage.spool_files.SpoolFiles`; one for each process."""

    def __init__(self, host: SpoolHost) -> None:
        self._host = host
        self._files: dict[str, SimulatedRingFile] = {}

    @property
    def disk(self) -> SimulatedDisk:
        """The host's."""
        return self._host.disk

    @property
    def place(self) -> str:
        """Its name for people."""
        return FOLDER

    def names(self) -> list[str]:
        """Those that are there."""
        return self.disk.list(FOLDER)

    def make(self, name: str, size: int) -> SimulatedRingFile:
        """A new file."""
        self.disk.make_folder(FOLDER)
        try:
            self.disk.open(f"{FOLDER}/{name}", create=True).allocate(size)
        except DiskFullError as error:
            self.disk.remove(f"{FOLDER}/{name}")
            raise OSError(str(error)) from None
        return self._opened(name)

    def take(self, name: str) -> SimulatedRingFile | None:
        """None while its writer lives."""
        return self._opened(name) if name not in self._host.taken else None

    def _opened(self, name: str) -> SimulatedRingFile:
        self._host.taken.add(name)
        memory = memoryview(self.disk.inode(f"{FOLDER}/{name}").content)
        self._files[name] = SimulatedRingFile(self, name, memory)
        return self._files[name]

    def let_go(self, name: str) -> None:
        """Another process may have it."""
        del self._files[name]
        self._host.taken.discard(name)

    def kill(self) -> None:
        """The process ends: it writes nothing more, and the next one may have its files."""
        for file in list(self._files.values()):
            file.close()
