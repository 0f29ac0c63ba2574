"""Changes of users, keys and policies, and the rule that one administrator must always remain.

Every change writes records under higher numbers, and then the register that names them (`user_register`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec

from penstock.metadata.election import Election
from penstock.metadata.seals.master_key import MasterKey, Token
from penstock.metadata.store.interface import ABSENT, MetadataStore, VersionConflictError
from penstock.metadata.users.books import NothingSeen, SeenNumber, StoredUsers, UserBooks
from penstock.metadata.users.books import UserError as UserError
from penstock.metadata.users.users import (
    ACCOUNT,
    KEYS,
    POLICY_NAME,
    USER_NAME,
    USERS,
    AccessKey,
    User,
    new_access_key,
    new_user_id,
)

TURN_SECONDS = 10.0
"""How long others wait for an administrator that died in the middle."""

Written = TypeVar("Written")


class NotFoundError(UserError):
    """There is no such user, key or policy."""


class UserAdministration:
    """Works on the store itself, never on a cache, so that it checks the present state."""

    def __init__(
        self, store: MetadataStore, token: Token, now_ms: Callable[[], int], seen: SeenNumber | None = None
    ) -> None:
        self._store = store
        self._books = UserBooks(store, now_ms, seen if seen is not None else NothingSeen())
        self._token = token
        self._now_ms = now_ms

    async def users(self) -> list[User]:
        return [user for user, _ in (await self._books.read()).users.values()]

    async def keys(self, name: str | None = None) -> list[AccessKey]:
        """All keys, or those of a user."""
        keys = [key for key, _ in (await self._books.read()).keys.values()]
        return [key for key in keys if name is None or key.user == name]

    async def strange(self) -> list[str]:
        """Entries of users and keys that are ignored, because they have no valid seal or are older than the register."""
        return sorted((await self._books.read()).strange)

    async def user(self, name: str) -> User:
        return _found_user(await self._books.read(), name)[0]

    async def create_user(
        self, name: str, account: str, root: bool, policies: dict[str, str], master_key: MasterKey
    ) -> tuple[User, AccessKey, str]:
        """A user, its first key, and the key's secret."""
        if not USER_NAME.fullmatch(name):
            raise UserError(f"{name!r} is not a user name: use 1 to 64 letters, digits and _ + = , . @ -")
        if not ACCOUNT.fullmatch(account):
            raise UserError(f"{account!r} is not an account: it has 12 digits")
        async with self._changing(more=2) as stored:
            if not root and not any(user.root for user, _ in stored.users.values()):
                raise UserError(
                    "the first user must be a root, so that there is an administrator: "
                    "`penstock user create NAME --root`"
                )
            user = User(
                name=name,
                account=account,
                user_id=new_user_id(self._token),
                root=root,
                policies=policies,
                created_ms=self._now_ms(),
            )
            # The key first: a crash in between leaves a key without a user, which opens nothing, and no user without key.
            key, secret = await self._put_new_key(user, master_key)
            try:
                user = await self._books.put(USERS + name, user, ABSENT)
            except VersionConflictError:
                await self._books.delete(KEYS + key.key_id)
                raise UserError(
                    f"there is a user {name} already; `penstock user key create {name}` adds a key"
                ) from None
            return user, key, secret

    async def delete_user(self, name: str) -> None:
        """Deletes a user with its keys; also an ignored one, from any writer."""
        async with self._changing() as stored:
            if USERS + name in stored.strange:
                version = stored.strange[USERS + name]
            else:
                user, version = _found_user(stored, name)
                others = [other for other, _ in stored.users.values() if other.name != name]
                if user.root and others and not any(other.root and other.enabled for other in others):
                    raise UserError(
                        f"{name} is the last root, and other users exist: create another root first, or delete the others"
                    )
            # The user first: its keys open nothing from then on, even if some of them stay behind.
            await self._guarded(self._books.delete(USERS + name, version), name)
            for key, _ in stored.keys.values():
                if key.user == name:
                    await self._books.delete(KEYS + key.key_id)

    async def set_user_enabled(self, name: str, enabled: bool) -> User:
        async with self._changing() as stored:
            user, version = _found_user(stored, name)
            if not enabled:
                _check_somebody_is_left(stored, without_user=name)
            changed = msgspec.structs.replace(user, enabled=enabled)
            return await self._guarded(self._books.put(USERS + name, changed, version), name)

    async def put_policy(self, name: str, policy_name: str, text: str) -> None:
        if not POLICY_NAME.fullmatch(policy_name):
            raise UserError(
                f"{policy_name!r} is not a policy name: use 1 to 128 letters, digits and _ + = , . @ -"
            )
        async with self._changing() as stored:
            user, version = _found_user(stored, name)
            changed = msgspec.structs.replace(user, policies={**user.policies, policy_name: text})
            await self._guarded(self._books.put(USERS + name, changed, version), name)

    async def delete_policy(self, name: str, policy_name: str) -> None:
        async with self._changing() as stored:
            user, version = _found_user(stored, name)
            self.policy_of(user, policy_name)
            left = {one: text for one, text in user.policies.items() if one != policy_name}
            changed = msgspec.structs.replace(user, policies=left)
            await self._guarded(self._books.put(USERS + name, changed, version), name)

    @staticmethod
    def policy_of(user: User, policy_name: str) -> str:
        if policy_name not in user.policies:
            raise NotFoundError(
                f"{user.name} has no policy {policy_name}; `penstock user show {user.name}` lists them"
            )
        return user.policies[policy_name]

    async def create_key(self, name: str, master_key: MasterKey) -> tuple[AccessKey, str]:
        async with self._changing(more=1) as stored:
            return await self._put_new_key(_found_user(stored, name)[0], master_key)

    async def set_key_enabled(self, key_id: str, enabled: bool) -> AccessKey:
        async with self._changing() as stored:
            key, version = _found_key(stored, key_id)
            if not enabled:
                _check_somebody_is_left(stored, without_key=key_id)
            changed = msgspec.structs.replace(key, enabled=enabled)
            return await self._guarded(self._books.put(KEYS + key_id, changed, version), key_id)

    async def delete_key(self, key_id: str) -> None:
        """Deletes a key; also an ignored one, from any writer."""
        async with self._changing() as stored:
            if KEYS + key_id in stored.strange:
                version = stored.strange[KEYS + key_id]
            else:
                _, version = _found_key(stored, key_id)
                _check_somebody_is_left(stored, without_key=key_id)
            await self._guarded(self._books.delete(KEYS + key_id, version), key_id)

    @asynccontextmanager
    async def _changing(self, more: int = 0) -> AsyncIterator[StoredUsers]:
        """One at a time: two who each take one of two roots away would both find the other one still there.

        What was changed is in the register when this ends well.
        """
        turn = await Election(self._store, "user-administration", "", TURN_SECONDS).campaign()
        try:
            self._books.begin()
            stored = await self._books.read()
            if stored.strange and stored.register is None:
                raise UserError(
                    "the users that are there have no seals: an earlier version wrote them. Check them and seal them first, with "
                    "`penstock user seal`"
                )
            self._books.check_room(stored, more)
            yield stored
            await self._books.register()
        finally:
            await turn.resign()

    async def _put_new_key(self, user: User, master_key: MasterKey) -> tuple[AccessKey, str]:
        key, secret = new_access_key(user, master_key, self._token, self._now_ms())
        return await self._books.put(KEYS + key.key_id, key, ABSENT), secret

    @staticmethod
    async def _guarded(writing: Awaitable[Written], what: str) -> Written:
        try:
            return await writing
        except VersionConflictError:
            raise UserError(f"{what} was changed by another process at the same time: try again") from None


def _found_user(stored: StoredUsers, name: str) -> tuple[User, int]:
    if USERS + name in stored.strange:
        raise UserError(
            f"the record of user {name} has no valid seal, or is older than the one in the register of users: it gives no access. "
            f"`penstock user delete {name}` removes it, `penstock user seal` seals what an earlier version wrote"
        )
    if USERS + name not in stored.users:
        raise NotFoundError(f"there is no user {name}; `penstock user list` shows the users there are")
    return stored.users[USERS + name]


def _found_key(stored: StoredUsers, key_id: str) -> tuple[AccessKey, int]:
    if KEYS + key_id not in stored.keys:
        raise NotFoundError(
            f"there is no access key {key_id}; `penstock user key list NAME` shows a user's keys"
        )
    return stored.keys[KEYS + key_id]


def _check_somebody_is_left(stored: StoredUsers, without_user: str = "", without_key: str = "") -> None:
    """A root that could sign before must not be the last one that can."""
    users = {user.user_id: user for user, _ in stored.users.values()}
    able = [
        key
        for key, _ in stored.keys.values()
        if key.enabled and (user := users.get(key.user_id)) is not None and user.root and user.enabled
    ]
    left = [key for key in able if key.key_id != without_key and key.user != without_user]
    if able and not left:
        raise UserError(
            "no root could sign requests any more: create another root with `penstock user create NAME --root`, "
            "or another key with `penstock user key create NAME`, first"
        )
