"""What storage can run into, as exceptions and as findings; what to do about them is the node's decision."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class StorageError(Exception):
    """Anything below; the message is a sentence a person can act on."""


class StorageVersionError(StorageError):
    """The directory was written by a version of Penstock that this one cannot read."""


class StorageDamagedError(StorageError):
    """The directory as a whole cannot be trusted, so the node must not start on it."""


class StorageFailedError(StorageError):
    """The disk failed under the node; it must stop, because nothing it has not synced may be believed."""


class JournalFailedError(StorageFailedError):
    """A flush failed: what was appended may or may not be on disk."""


class JournalExhaustedError(StorageError):
    """Every prepared journal file is full and no other can be made; nothing was appended, nothing is harmed."""


class JournalBusyError(StorageError):
    """The next journal file is still being prepared; nothing was appended, try again in a moment."""


class DamagedEntryError(StorageError):
    """An entry that was once written cannot be read back as it was."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file} at offset {offset}: {reason}")
        self.file = file
        self.offset = offset
        self.reason = reason


class Damage(msgspec.Struct, frozen=True, array_like=True):
    """A partition whose stored data is not what was written; it is fenced, its files are left as they are."""

    partition: int
    file: str
    offset: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.file} at offset {self.offset}: " if self.file else ""
        return f"partition {self.partition}: {where}{self.reason}"


class TornTail(NamedTuple):
    """Where a crash interrupted the journal: from `offset` on nothing had been promised, so it was cut."""

    file: str
    offset: int
    bytes: int
