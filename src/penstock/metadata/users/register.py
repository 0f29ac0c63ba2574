"""The register of users: which records of users and keys count, so that none that was replaced or deleted can be put back.

A seal shows that whoever has the master key wrote a record, and not that it is the last one written. So every record has a
number, which only rises, and the register, one sealed entry, knows the numbers of all records up to its own. A record counts
if it is newer than the register, or if the register names it. Changes write the record first and then the register:
in between both are good, and an interruption is put right by the next change.

The register itself could be put back, or deleted. Whoever reads it remembers the highest number that was seen (`seen_register`),
beside the master key, and takes no lower one. So a store whose users were all deleted by somebody without the key does
not become one without users, where everybody may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from penstock.metadata.seals.seals import REGISTER
from penstock.model.document import Document, DocumentReader

REGISTER_KEY = f"{REGISTER}users"
RECORDS_AT_MOST = 10_000
"""Users and access keys together: the register is one entry, and a store takes no larger one than a megabyte or so."""


ADMINISTRATOR_WRITES = 10
"""Administrators take turns; who writes the register at the same time has lost its turn, and is followed at once."""
FIRST_SEAL_WRITES = 5
"""Processes of one server that seal what an earlier version wrote."""


class WriteTurns:
    """How often one process tries to write the register while others are quicker."""

    def __init__(self, most: int) -> None:
        self._left = most

    def lost(self) -> bool:
        """Another process was quicker; whether to read again and write again."""
        self._left -= 1
        return self._left > 0


class UserRegister(Document, frozen=True, kw_only=True):
    """What counts, as of a moment."""

    number: int
    """Every record that is not newer than this and is not named below counts no more."""
    records: dict[str, int] = msgspec.field(default_factory=dict)
    """By the keys of entries: the number of the record that stands there."""

    def names(self, key: str, number: int) -> bool:
        """Whether a record counts."""
        return number > self.number or self.records.get(key) == number


_encoder = msgspec.json.Encoder()
_reader: DocumentReader[UserRegister] = DocumentReader(UserRegister)


def encode(register: UserRegister) -> bytes:
    """The bytes to store."""
    return _encoder.encode(register)


def decode(stored: bytes) -> UserRegister:
    """A stored register; raises `msgspec.MsgspecError` on anything else."""
    return _reader.decode(stored)


def counts(register: UserRegister | None, key: str, number: int) -> bool:
    """Whether a record counts; before there is a register, all that are sealed do."""
    return register is None or register.names(key, number)


def next_number(register: UserRegister | None, numbers: Iterable[int], seen: int, now_ms: int) -> int:
    """Higher than all before, also than those that nobody here remembers: time goes on after a backup was put back."""
    known = register.number if register is not None else 0
    return max(known, seen, max(numbers, default=0), now_ms - 1) + 1
