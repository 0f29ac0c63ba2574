"""A disk in memory that loses unsynced data, tears partial writes, fills up and fails on request.

The counterpart of `runtime.disk`. All its random choices come from a given generator, so a seed replays a run. It is as
bad as a real disk may be, not worse: on a power cut every unsynced write is lost, kept or torn at 512-byte sectors, in any
order, and names that were created, changed or removed without a `sync_directory` may be as they were before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from penstock.model.batch import Buffer
from penstock.simulation.inode import Inode
from penstock.storage.disk import DirectoryBusyError, DiskFailedError, DiskFullError, WouldBlockError

REMEMBERED_WRITES = 400


class PowerLoss(BaseException):
    """The machine is off. Not an `Exception`, so that no code under test can survive it."""


Fault = Callable[[str, str], Exception | None]
"""Called with an operation and a name before it is carried out; the exception that it returns is raised instead."""


class SimulatedFile:
    """An open file; like a descriptor, it outlives a rename or a removal of its name."""

    def __init__(self, disk: SimulatedDisk, name: str, inode: Inode) -> None:
        self._disk = disk
        self._name = name
        self._inode = inode

    @property
    def name(self) -> str:
        return self._name

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        self._disk.begin("write", self._name)
        self._disk.take_space(offset + len(data) - len(self._inode.content))
        self._inode.write(offset, data)

    def read_at(self, offset: int, size: int, *, block: bool = True) -> bytes:
        self._disk.check_power()
        if not block and self._disk.is_cold():
            raise WouldBlockError(self._name)
        self._disk.look(self._name)
        if not self._inode.can_read(offset, size):
            raise DiskFailedError(f"reading {self._name}: the device cannot read a sector")
        return bytes(self._inode.content[offset : offset + size])

    def allocate(self, size: int) -> None:
        self.write_at(0, [bytes(size)])
        self.sync()

    def truncate(self, size: int) -> None:
        self._disk.begin("truncate", self._name)
        self._inode.truncate(size)

    def size(self) -> int:
        self._disk.check_power()
        return len(self._inode.content)

    def sync(self) -> None:
        try:
            self._disk.begin("sync", self._name)
        except DiskFailedError:
            # As a kernel does: the pages count as clean although they never reached the disk.
            self._inode.forget_unsynced()
            raise
        if not self._disk.lies:
            self._inode.sync()

    def close(self) -> None:
        pass


class SimulatedDisk:
    """A data directory in memory."""

    def __init__(self, random: Random, *, capacity: int | None = None, cold_reads: float = 0.0) -> None:
        self.random = random
        self.capacity = capacity
        self.cold_reads = cold_reads
        """How often a read that must not block finds nothing in memory."""
        self.fault: Fault | None = None
        self.trace: Callable[[str], None] | None = None
        self.operations = 0
        self.power_off_after: int | None = None
        """After this many operations the machine loses power in the middle of the next."""
        self.lies = False
        """Whether it only says that it has synced."""
        self.loses_all = False
        """Whether the next power cut takes everything that was not synced, instead of some of it."""
        self.remembers = False
        """Whether it is remembered what lay where something was written."""
        self._names: dict[str, Inode | None] = {}  # None: a folder
        self._durable_names: dict[str, Inode | None] = {}
        self._unsynced: dict[
            str, list[tuple[str, str, str | Inode | None]]
        ] = {}  # folder → what was done in it
        self._locked = False
        self._dead = False

    # -- the interface ---------------------------------------------------------------------------------------

    def lock(self) -> None:
        self.check_power()
        if self._locked:
            raise DirectoryBusyError("the simulated directory is in use")
        self._locked = True

    def open(self, name: str, *, create: bool = False) -> SimulatedFile:
        self.check_power()
        inode = self._names.get(name)
        if inode is None:
            if not create:
                raise FileNotFoundError(name)
            if _folder(name) and _folder(name) not in self._names:
                raise FileNotFoundError(_folder(name))
            self.begin("create", name)
            inode = Inode()
            if self.remembers:
                inode.overwritten = deque(maxlen=REMEMBERED_WRITES)
            self._change("link", name, inode)
        return SimulatedFile(self, name, inode)

    def list(self, folder: str) -> list[str]:
        self.check_power()
        start = f"{folder}/" if folder else ""
        inside = (name[len(start) :] for name in self._names if name.startswith(start))
        return sorted(name for name in inside if "/" not in name)

    def rename(self, old: str, new: str) -> None:
        self._must_exist(old)
        self.begin("rename", f"{old} to {new}")
        self._change("rename", new, old)

    def remove(self, name: str) -> None:
        self._must_exist(name)
        if self._names[name] is None and self.list(name):
            raise DiskFailedError(f"removing {name}: it is not empty")
        self.begin("remove", name)
        self._change("remove", name, None)

    def make_folder(self, name: str) -> None:
        self.check_power()
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            if path not in self._names:
                self.begin("make_folder", path)
                self._change("link", path, None)

    def sync_directory(self, folder: str) -> None:
        if folder:
            self._must_exist(folder)
        self.begin("sync_directory", folder)
        if self.lies:
            return
        for operation in self._unsynced.pop(folder, ()):
            _apply(self._durable_names, operation)

    def free_bytes(self) -> int:
        self.check_power()
        return 2**50 if self.capacity is None else max(0, self.capacity - self.used_bytes())

    # -- faults ----------------------------------------------------------------------------------------------

    def crash(self) -> SimulatedDisk:
        """Cuts the power: each unsynced write is lost, kept or torn separately; `reopen` returns the rest."""
        self._dead = True
        style = "lost" if self.loses_all else self.random.choice(("lost", "kept", "mixed", "mixed"))
        for operations in self._unsynced.values():
            for operation in operations:
                if style == "kept" or (style == "mixed" and self.random.random() < 0.5):
                    _apply(self._durable_names, operation)
        self._unsynced = {}
        _drop_orphans(self._durable_names)
        self._names = dict(self._durable_names)
        for inode in dict.fromkeys(self._names.values()):
            if inode is not None:
                inode.crash(self.random, style)
        return self.reopen()

    def kill(self) -> None:
        """Ends the process but not the machine: written data is there, although a power cut may still lose it."""
        self._dead = True

    def reopen(self) -> SimulatedDisk:
        """The same directory as the next process finds it, after `crash` or `kill`."""
        self._dead = True
        disk = SimulatedDisk(self.random, capacity=self.capacity, cold_reads=self.cold_reads)
        disk.trace, disk.remembers = self.trace, self.remembers
        disk._names, disk._durable_names, disk._unsynced = self._names, self._durable_names, self._unsynced
        return disk

    def without_faults(self) -> SimulatedDisk:
        """The same files for a look from outside: a fault that is planned for the process strikes the process only."""
        disk = SimulatedDisk(self.random)
        disk._names = self._names
        return disk

    def copy(self, random: Random) -> SimulatedDisk:
        """A separate directory with the same contents, synced and unsynced; faults are not copied."""
        disk = SimulatedDisk(random, capacity=self.capacity, cold_reads=self.cold_reads)
        inodes: dict[Inode | None, Inode | None] = {None: None}

        def copied(inode: Inode | None) -> Inode | None:
            if inode not in inodes and inode is not None:
                inodes[inode] = inode.copy()
            return inodes[inode]

        disk._names = {name: copied(inode) for name, inode in self._names.items()}
        disk._durable_names = {name: copied(inode) for name, inode in self._durable_names.items()}
        disk._unsynced = {
            folder: [
                (kind, name, what if isinstance(what, str) else copied(what))
                for kind, name, what in operations
            ]
            for folder, operations in self._unsynced.items()
        }
        return disk

    def flip_bit(self, name: str, offset: int, bit: int = 0) -> None:
        """Damages a stored byte, as a bad medium does."""
        self._inode(name).flip(offset, 1 << bit)

    def lose(self, name: str) -> None:
        """A file is not there any more, as when its folder is damaged."""
        for names in (self._names, self._durable_names):
            names.pop(name, None)
        self._unsynced = {
            folder: [operation for operation in operations if name not in operation[1:]]
            for folder, operations in self._unsynced.items()
        }

    def inode(self, name: str) -> Inode:
        """A file, for fault injection."""
        return self._inode(name)

    def contents(self, name: str) -> bytes:
        """The bytes of a file as a read would see them."""
        return bytes(self._inode(name).content)

    def files(self) -> dict[str, int]:
        """Every file and its size."""
        return {name: len(inode.content) for name, inode in sorted(self._names.items()) if inode is not None}

    # -- what the files ask ----------------------------------------------------------------------------------

    def check_power(self) -> None:
        """Raises once the machine is off."""
        if self._dead:
            raise PowerLoss

    def begin(self, operation: str, name: str) -> None:
        """Counts an operation that changes something; it may be the one at which the power goes or a fault strikes."""
        self.check_power()
        if self.operations == self.power_off_after:
            self._dead = True
            raise PowerLoss
        self.operations += 1
        if self.trace is not None:
            self.trace(f"{operation} {name}")
        if self.fault is not None and (error := self.fault(operation, name)) is not None:
            raise error

    def look(self, name: str) -> None:
        """A read; a fault may strike, though nothing changes."""
        if self.fault is not None and (error := self.fault("read", name)) is not None:
            raise error

    def take_space(self, growth: int) -> None:
        """Raises when the disk cannot hold that many more bytes."""
        if growth > 0 and growth > self.free_bytes():
            raise DiskFullError(f"{growth} bytes are needed, {self.free_bytes()} are free")

    def is_cold(self) -> bool:
        """Whether this read would have to wait for the device."""
        return self.cold_reads > 0 and self.random.random() < self.cold_reads

    def _change(self, kind: str, name: str, what: str | Inode | None) -> None:
        operation = (kind, name, what)
        _apply(self._names, operation)
        self._unsynced.setdefault(_folder(name), []).append(operation)

    def _must_exist(self, name: str) -> None:
        self.check_power()
        if name not in self._names:
            raise FileNotFoundError(name)

    def _inode(self, name: str) -> Inode:
        inode = self._names.get(name)
        if inode is None:
            raise FileNotFoundError(name)
        return inode

    def used_bytes(self) -> int:
        """Bytes of all files."""
        return sum(len(inode.content) for inode in self._names.values() if inode is not None)


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _apply(names: dict[str, Inode | None], operation: tuple[str, str, str | Inode | None]) -> None:
    """Carries out a change of names; one whose beginning was lost does nothing."""
    kind, name, what = operation
    if kind == "remove":
        names.pop(name, None)
    elif not isinstance(what, str):
        names[name] = what
    elif what in names:
        names[name] = names.pop(what)


def _drop_orphans(names: dict[str, Inode | None]) -> None:
    """Removes the contents of directories that were never durably created."""
    for name in sorted(names):
        folder = _folder(name)
        if folder and folder not in names:
            del names[name]
