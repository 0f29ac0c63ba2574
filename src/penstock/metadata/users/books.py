"""Records of users and keys as administrators read and write them: numbered, and named by the register."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from penstock.metadata.store.interface import ABSENT, Entry, MetadataStore, VersionConflictError
from penstock.metadata.users.register import (
    ADMINISTRATOR_WRITES,
    RECORDS_AT_MOST,
    REGISTER_KEY,
    UserRegister,
    WriteTurns,
    counts,
    decode,
    next_number,
)
from penstock.metadata.users.register import encode as encode_register
from penstock.metadata.users.users import KEYS, USERS, AccessKey, User, decode_key, decode_user, encode

Record = TypeVar("Record", User, AccessKey)


class UserError(Exception):
    """It was not done; the message says why and what to do."""


class SeenNumber(Protocol):
    """The highest number of a register that was seen (`seen_register`)."""

    def load(self) -> int: ...
    def note(self, number: int) -> None: ...


class NothingSeen:
    """For processes that remember none."""

    def load(self) -> int:
        return 0

    def note(self, number: int) -> None:
        return


class StoredUsers(NamedTuple):
    """Everything about users that is in the store."""

    users: dict[str, tuple[User, int]]
    """By the keys of entries: records that count, and the versions of the entries."""
    keys: dict[str, tuple[AccessKey, int]]
    strange: dict[str, int]
    """Entries that cannot be read, have no seal, or are not valid any more, with their versions: they are ignored."""
    register: UserRegister | None
    register_version: int

    def numbers(self) -> dict[str, int]:
        """The number of each record that counts, by the keys of entries."""
        users = {key: user.number for key, (user, _) in self.users.items()}
        return users | {key: access_key.number for key, (access_key, _) in self.keys.items()}


class UserBooks:
    """Works on the store itself, never on a cache."""

    def __init__(self, store: MetadataStore, now_ms: Callable[[], int], seen: SeenNumber) -> None:
        self._store = store
        self._now_ms = now_ms
        self._seen = seen
        self._number = 0
        """The highest that was read or given out."""
        self._changed: dict[str, int | None] = {}
        """The records written since the last register: their numbers, None for deleted ones."""

    async def read(self) -> StoredUsers:
        """All records; raises `UserError` where the register is not the one that it should be."""
        users = (await self._store.list(USERS)).entries
        keys = (await self._store.list(KEYS)).entries
        entry = await self._store.get(REGISTER_KEY)  # last: the records that it names were written before it
        register = self._checked(entry)
        found = StoredUsers({}, {}, {}, register, entry.version if entry is not None else ABSENT)
        for one in users:
            self._sort(one, decode_user, found.users, found)
        for one in keys:
            self._sort(one, decode_key, found.keys, found)
        numbers = [*found.numbers().values()]
        self._number = next_number(register, [self._number, *numbers], self._seen.load(), self._now_ms()) - 1
        return found

    def _checked(self, entry: Entry | None) -> UserRegister | None:
        try:
            register = decode(entry.value) if entry is not None else None
        except msgspec.MsgspecError as error:
            raise UserError(
                f"the register of users in the metadata store cannot be trusted: {error}"
            ) from None
        seen = self._seen.load()
        if seen > (register.number if register is not None else 0):
            raise UserError(
                f"the register of users is {f'number {register.number}' if register is not None else 'missing'}, and number {seen} was "
                "seen here: a process without the master key restored or deleted it. If you restored a backup, check "
                "the users and seal them with `penstock user seal`"
            )
        return register

    @staticmethod
    def _sort(
        entry: Entry,
        read: Callable[[bytes], Record],
        good: dict[str, tuple[Record, int]],
        found: StoredUsers,
    ) -> None:
        try:
            record = read(entry.value)
        except msgspec.MsgspecError:
            found.strange[entry.key] = entry.version
            return
        if counts(found.register, entry.key, record.number):
            good[entry.key] = (record, entry.version)
        else:
            found.strange[entry.key] = entry.version

    async def put(self, key: str, record: Record, version: int) -> Record:
        """Writes a record under the next number, after `read`; raises `VersionConflictError`."""
        self._number += 1
        numbered = msgspec.structs.replace(record, number=self._number)
        await self._store.put(key, encode(numbered), version)
        self._changed[key] = self._number
        return numbered

    async def delete(self, key: str, version: int | None = None) -> None:
        """Deletes a record; the next register does not name it, whatever is stored there by then."""
        await self._store.delete(key, version)
        self._changed[key] = None

    def begin(self) -> None:
        """A change begins: earlier unregistered records are judged like those of others."""
        self._changed.clear()

    async def register(self) -> None:
        """Names all valid records: replaced or deleted ones become invalid, wherever they are kept.

        What this administrator has written counts as it was written. A writer without the master key may have restored the
        earlier record in the same moment, and by the old register that one is valid.
        """
        turns = WriteTurns(ADMINISTRATOR_WRITES)
        while True:
            stored = await self.read()
            self._number += 1
            records = {key: number for key, number in stored.numbers().items() if key not in self._changed}
            records |= {key: number for key, number in self._changed.items() if number is not None}
            new = UserRegister(number=self._number, records=records)
            if stored.register is not None:
                new = msgspec.structs.replace(stored.register, number=new.number, records=records)
            try:
                await self._store.put(REGISTER_KEY, encode_register(new), stored.register_version)
            except VersionConflictError:
                if turns.lost():
                    continue
                raise UserError("other processes keep changing the users: try again") from None
            self._seen.note(new.number)
            self._changed.clear()
            return

    @staticmethod
    def check_room(stored: StoredUsers, more: int) -> None:
        """Raises `UserError` where the register has no room for more records."""
        if len(stored.users) + len(stored.keys) + more > RECORDS_AT_MOST:
            raise UserError(f"there are {RECORDS_AT_MOST} users and access keys, as many as there may be")
