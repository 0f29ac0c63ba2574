"""Access keys as every request looks them up: in memory, at once, with the secret in clear."""

from __future__ import annotations

import logging

import msgspec

from penstock.metadata.cache import MetadataCache
from penstock.metadata.master_key import MasterKey, WrongMasterKeyError
from penstock.metadata.store.interface import Change
from penstock.metadata.users import KEYS, USERS, User, decode_key, decode_user

_log = logging.getLogger(__name__)


class KeyOwner(msgspec.Struct, frozen=True, eq=False):
    """Whose a key is. The same object until the key or the user changes, so more may be remembered by it."""

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
    """Over a cache; disabled users and keys are as if they were unknown."""

    def __init__(self, cache: MetadataCache, master_key: MasterKey) -> None:
        self._cache = cache
        self._master_key = master_key
        self._owners: dict[str, KeyOwner | None] = {}
        """Only of keys that exist, so that made-up ones fill no memory."""
        self._users = {entry.key for entry in cache.list(USERS)}
        cache.listen(USERS, self._user_changed)
        cache.listen(KEYS, self._key_changed)

    def has_users(self) -> bool:
        """Whether anybody at all is known, enabled or not: from the first user on, nobody else is let in."""
        return bool(self._users)

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
            return KeyOwner(key_id, user, self._master_key.decrypt(key.secret, key_id).decode())
        except (msgspec.MsgspecError, WrongMasterKeyError, UnicodeDecodeError) as error:
            _log.warning("access key %s cannot be used: %s", key_id, error)
            return None

    def _user_changed(self, change: Change) -> None:
        if change.value is None:
            self._users.discard(change.key)
        else:
            self._users.add(change.key)
        self._owners.clear()  # users change rarely, and their keys are found again at once

    def _key_changed(self, change: Change) -> None:
        self._owners.pop(change.key.removeprefix(KEYS), None)
