"""The register of users: which records of users and keys are valid, so that no replaced or deleted one can be restored.

A seal shows that an owner of the master key wrote a record, but not that it is the last one. So every record has a rising
number, and the register, one sealed entry, knows the numbers of all records up to its own. A record is valid if it is
newer than the register, or if the register names it. Changes write the record first and then the register. In between both
are valid, and the next change completes an interrupted one.

The register itself could be restored or deleted. So every reader remembers the highest number that it has seen
(`seen_register`), beside the master key, and accepts no lower one. So if a writer without the key deletes all users of a
store, it does not become a store without users, where everything is allowed.
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
    """The valid records at one moment."""

    number: int
    """Every record that is not newer than this and is not named below is invalid."""
    records: dict[str, int] = msgspec.field(default_factory=dict)
    """By the keys of entries: the number of the record there."""

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
    """Higher than all earlier ones, also than those that are not known here: time continues after a backup was restored."""
    known = register.number if register is not None else 0
    return max(known, seen, max(numbers, default=0), now_ms - 1) + 1
