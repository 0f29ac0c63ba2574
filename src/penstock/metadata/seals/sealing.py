"""Seals entries of a store without a seal: those of earlier versions, and those restored from a backup.

Sealing confirms the entries. So an operator who has checked them does it (`penstock user seal`, `penstock cluster seal`),
or it is done once, for a file that only the server's own user can have written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from penstock.metadata.seals.master_key import MasterKey
from penstock.metadata.seals.seals import (
    QUEUE_KINDS,
    NoSealError,
    Sealer,
    WrongSealError,
    front_end_sealers,
)
from penstock.metadata.store.interface import ABSENT, Entry, MetadataStore, VersionConflictError
from penstock.metadata.users.books import Record, SeenNumber
from penstock.metadata.users.register import (
    REGISTER_KEY,
    UserRegister,
    decode,
    encode,
    next_number,
)
from penstock.metadata.users.users import KEYS, USERS, AccessKey, User, decode_key, decode_user, is_proper
from penstock.metadata.users.users import encode as encode_record

_KEPT_OUT = ("seal", "number")
"""Fields that an earlier version has put among those that it does not know."""


class FoundUsers(NamedTuple):
    """What there is to vouch for, as it stands in the store."""

    users: dict[str, tuple[User, int]]
    """By the keys of entries, with the versions of the entries."""
    keys: dict[str, tuple[AccessKey, int]]
    unreadable: list[str]
    """Entries that are no records of users or keys at all; they stay as they are."""
    unsealed: list[str]
    """Entries, of queues too, that have no seal or a wrong one."""
    register: UserRegister | None
    """None: there is none, or one without a right seal."""
    register_version: int

    @property
    def sealed(self) -> bool:
        """Whether there is nothing to do."""
        return not self.unsealed and (self.register is not None or not self.users)


async def look(store: MetadataStore, master_key: MasterKey) -> FoundUsers:
    """What is in a store whose documents are read as they are, seals and all."""
    sealers = front_end_sealers(master_key)
    found = FoundUsers({}, {}, [], [], *await _register(store, sealers[USERS]))
    for entry in (await store.list(USERS)).entries:
        _note(sealers[USERS], entry.key, entry.value, found)
        user = _proper(entry, decode_user)
        if user is None:
            found.unreadable.append(entry.key)
        else:
            found.users[entry.key] = (user, entry.version)
    for entry in (await store.list(KEYS)).entries:
        _note(sealers[KEYS], entry.key, entry.value, found)
        key = _proper(entry, decode_key)
        if key is None:
            found.unreadable.append(entry.key)
        else:
            found.keys[entry.key] = (key, entry.version)
    for kind in QUEUE_KINDS:
        for entry in (await store.list(kind)).entries:
            _note(sealers[kind], entry.key, entry.value, found)
    return found


async def _register(store: MetadataStore, sealer: Sealer) -> tuple[UserRegister | None, int]:
    entry = await store.get(REGISTER_KEY)
    if entry is None:
        return None, ABSENT
    try:
        return decode(sealer.open(REGISTER_KEY, entry.value)), entry.version
    except (NoSealError, WrongSealError, msgspec.MsgspecError):
        return None, entry.version


def _note(sealer: Sealer, key: str, value: bytes, found: FoundUsers) -> None:
    if not _is_sealed(sealer, key, value):
        found.unsealed.append(key)


def _is_sealed(sealer: Sealer, key: str, value: bytes) -> bool:
    try:
        sealer.open(key, value)
    except (NoSealError, WrongSealError):
        return False
    return True


def _proper(entry: Entry, read: Callable[[bytes], Record]) -> Record | None:
    try:
        record = read(entry.value)
    except msgspec.MsgspecError:
        return None
    return _bare(record) if is_proper(entry.key, record) else None


def _bare(record: Record) -> Record:
    later = record.later or {}
    kept = {name: value for name, value in later.items() if name not in _KEPT_OUT}
    return msgspec.structs.replace(record, later=kept or msgspec.UNSET)


async def seal_users(
    store: MetadataStore,
    master_key: MasterKey,
    found: FoundUsers,
    now_ms: Callable[[], int],
    seen: SeenNumber,
) -> None:
    """Seals the users and keys that were found, under new numbers, and names them in a new register.

    Raises `VersionConflictError` if one was changed meanwhile: then it was not checked.
    """
    sealer = front_end_sealers(master_key)[USERS]
    records: dict[str, tuple[User | AccessKey, int]] = {**found.users, **found.keys}
    number = next_number(found.register, (one.number for one, _ in records.values()), seen.load(), now_ms())
    numbers: dict[str, int] = {}
    for key, (record, version) in records.items():
        numbers[key] = number
        numbered: User | AccessKey = msgspec.structs.replace(record, number=number)
        await store.put(key, sealer.seal(key, encode_record(numbered)), version)
        number += 1
    if numbers or found.register is not None:
        register = UserRegister(number=number, records=numbers)
        await store.put(REGISTER_KEY, sealer.seal(REGISTER_KEY, encode(register)), found.register_version)
        seen.note(number)


async def seal_kinds(store: MetadataStore, sealers: dict[str, Sealer], kinds: Iterable[str]) -> int:
    """Seals every document under these keys that has no right seal; how many there were."""
    done = 0
    for kind in kinds:
        sealer = sealers[kind]
        for entry in (await store.list(kind)).entries:
            if _is_sealed(sealer, entry.key, entry.value):
                continue
            try:
                await store.put(entry.key, sealer.seal(entry.key, Sealer.bare(entry.value)), entry.version)
            except (VersionConflictError, ValueError):
                continue  # it is another one by now, with its own seal; or it was no document
            done += 1
    return done
