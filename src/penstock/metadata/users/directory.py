"""Access keys for every request: in memory, without waiting, with the secret in clear."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.seals.master_key import MasterKey, WrongMasterKeyError
from penstock.metadata.store.interface import Change
from penstock.metadata.users.register import REGISTER_KEY, UserRegister, counts, decode
from penstock.metadata.users.users import KEYS, USERS, User, decode_key, decode_user

_logger = logging.getLogger(__name__)


class KeyOwner(msgspec.Struct, frozen=True, eq=False):
    """The owner of a key. The same object until the key or the user changes, so it can be a key of caches."""

    key_id: str
    user: User
    secret: str

    @property
    def policies(self) -> tuple[str, ...]:
        """The JSON texts of the user's policies."""
        return tuple(self.user.policies.values())

    def __repr__(self) -> str:
        return f"KeyOwner({self.key_id}, {self.user.name})"  # secrets never reach logs


class UserDirectory:
    """Over a cache; disabled users and keys count as unknown, and so do invalid records."""

    def __init__(
        self,
        cache: MetadataCache,
        master_key: MasterKey,
        seen: int = 0,
        note: Callable[[int], None] = lambda number: None,
    ) -> None:
        """`seen` is the highest number of a register that was ever seen here; `note` remembers a higher one."""
        self._cache = cache
        self._master_key = master_key
        self._owners: dict[str, KeyOwner | None] = {}
        """Only of keys that exist, so that made-up ones fill no memory."""
        self._users = {entry.key for entry in cache.list(USERS)}
        self._register: UserRegister | None = None
        """The newest known register."""
        self._seen = seen
        self._note = note
        entry = cache.get(REGISTER_KEY)
        self._take_register(entry.value if entry is not None else None)
        cache.listen(REGISTER_KEY, self._register_changed)
        cache.listen(USERS, self._user_changed)
        cache.listen(KEYS, self._key_changed)

    @property
    def is_set_back(self) -> bool:
        """Whether the store has an older register than was seen, or none where there was one: then all users are refused."""
        return self._register is None and self._seen > 0

    def has_users(self) -> bool:
        """Whether there are any users, enabled or not: from the first user on, others are refused.

        A writer who can delete entries of the store, but has no key, cannot make it a store without users.
        """
        if self._users:
            return True
        register = self._register
        return bool(register.records) if register is not None else self.is_set_back

    def find_key(self, access_key_id: str) -> KeyOwner | None:
        """The owner of a key; None if there is no such key or it may not be used."""
        if access_key_id in self._owners:
            return self._owners[access_key_id]
        entry = self._cache.get(KEYS + access_key_id)
        if entry is None:
            return None
        owner = self._owners[access_key_id] = self._read(access_key_id, entry.value)
        return owner

    def _read(self, key_id: str, stored: bytes) -> KeyOwner | None:
        try:
            key = decode_key(stored)
            entry = self._cache.get(USERS + key.user)
            user = decode_user(entry.value) if entry is not None else None
            if user is None or user.user_id != key.user_id or not (user.enabled and key.enabled):
                return None
            if key.key_id != key_id or user.name != key.user:
                return None  # such records are not written
            if not (self._counts(KEYS + key_id, key.number) and self._counts(USERS + user.name, user.number)):
                _logger.warning(
                    "access key %(access_key)s cannot be used: its record or the record of its user %(user)s "
                    "is older than the one in the register of users",
                    {"access_key": key_id, "user": user.name},
                )
                return None
            return KeyOwner(key_id, user, self._master_key.decrypt(key.secret, key_id).decode())
        except (msgspec.MsgspecError, WrongMasterKeyError, UnicodeDecodeError) as error:
            _logger.warning(
                "access key %(access_key)s cannot be used: %(error)s", {"access_key": key_id, "error": error}
            )
            return None

    def _counts(self, key: str, number: int) -> bool:
        return not self.is_set_back and counts(self._register, key, number)

    # -- changes ---------------------------------------------------------------------------------------------

    def _take_register(self, stored: bytes | None) -> None:
        try:
            found = decode(stored) if stored is not None else None
        except msgspec.MsgspecError as error:
            _logger.error("the register of users cannot be used: %(error)s", {"error": error})
            found = None
        if found is not None and found.number >= self._seen:
            self._register = found
            if found.number > self._seen:
                self._seen = found.number
                self._note(found.number)
        elif self._seen:
            _logger.error(
                "the register of users in the metadata store is %(found)s, but number %(seen)d was seen "
                "here: a process without the master key has changed it. %(consequence)s. If you restored "
                "a backup, run `penstock user seal`",
                {
                    "found": f"number {found.number}" if found is not None else "missing",
                    "seen": self._seen,
                    "consequence": "The one that was seen still counts"
                    if self._register is not None
                    else "No user has access",
                },
            )

    def _register_changed(self, change: Change) -> None:
        self._take_register(change.value)
        self._owners.clear()

    def _user_changed(self, change: Change) -> None:
        if change.value is None:
            self._users.discard(change.key)
        else:
            self._users.add(change.key)
        self._owners.clear()  # users change rarely, and their keys are found again at once

    def _key_changed(self, change: Change) -> None:
        self._owners.pop(change.key.removeprefix(KEYS), None)
