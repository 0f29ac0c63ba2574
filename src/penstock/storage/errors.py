"""The failures of storage, as exceptions and as findings. The node decides what to do about them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class StorageError(Exception):
    """The base of all errors below; the message is a sentence that tells a person what to do."""


class StorageVersionError(StorageError):
    """A version of Penstock that this one cannot read wrote the directory."""


class StorageDamagedError(StorageError):
    """The directory as a whole is damaged, so the node must not start with it."""


class StorageFailedError(StorageError):
    """The disk failed while the node was running. The node must stop, because unsynced data may be lost."""


class JournalFailedError(StorageFailedError):
    """A flush failed: appended records may or may not be on disk."""


class JournalExhaustedError(StorageError):
    """Every prepared journal file is full and no other can be created. Nothing was appended and nothing is damaged."""


class JournalBusyError(StorageError):
    """The next journal file is still being prepared. Nothing was appended; try again in a moment."""


class DamagedEntryError(StorageError):
    """An entry cannot be read back as it was written."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file} at offset {offset}: {reason}")
        self.file = file
        self.offset = offset
        self.reason = reason


class Damage(msgspec.Struct, frozen=True, array_like=True):
    """A partition whose stored data differs from what was written. It is fenced, and its files are left unchanged."""

    partition: int
    file: str
    offset: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.file} at offset {self.offset}: " if self.file else ""
        return f"partition {self.partition}: {where}{self.reason}"


class TornTail(NamedTuple):
    """The place where a crash interrupted the journal: nothing from `offset` on was acknowledged, so it was cut."""

    file: str
    offset: int
    bytes: int
