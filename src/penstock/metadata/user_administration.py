"""Changes of users, keys and policies, and what must never happen: that nobody is left who may administer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from penstock.metadata.election import Election
from penstock.metadata.master_key import MasterKey, Token
from penstock.metadata.store.interface import ABSENT, MetadataStore, VersionConflictError
from penstock.metadata.users import (
    ACCOUNT,
    KEYS,
    POLICY_NAME,
    USER_NAME,
    USERS,
    AccessKey,
    User,
    decode_key,
    decode_user,
    encode,
    new_access_key,
    new_user_id,
)

TURN_SECONDS = 10.0
"""How long others wait for an administrator that died in the middle."""


class UserError(Exception):
    """It was not done; the message says why and what to do."""


class NotFoundError(UserError):
    """There is no such user, key or policy."""


class UserAdministration:
    """Works on the store itself, never on a cache: what it checks is what is there."""

    def __init__(self, store: MetadataStore, token: Token, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._token = token
        self._now_ms = now_ms

    async def users(self) -> list[User]:
        return [decode_user(entry.value) for entry in (await self._store.list(USERS)).entries]

    async def keys(self, name: str | None = None) -> list[AccessKey]:
        """All keys, or those of a user."""
        keys = [decode_key(entry.value) for entry in (await self._store.list(KEYS)).entries]
        return [key for key in keys if name is None or key.user == name]

    async def user(self, name: str) -> User:
        return (await self._found_user(name))[0]

    async def create_user(
        self, name: str, account: str, root: bool, policies: dict[str, str], master_key: MasterKey
    ) -> tuple[User, AccessKey, str]:
        """A user, its first key, and the key's secret."""
        if not USER_NAME.fullmatch(name):
            raise UserError(f"{name!r} is not a user name: use 1 to 64 letters, digits and _ + = , . @ -")
        if not ACCOUNT.fullmatch(account):
            raise UserError(f"{account!r} is not an account: it has 12 digits")
        if not root and not any(user.root for user in await self.users()):
            raise UserError(
                "the first user must be a root, so that somebody may administer: "
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
            await self._store.put(USERS + name, encode(user), ABSENT)
        except VersionConflictError:
            await self._store.delete(KEYS + key.key_id)
            raise UserError(
                f"there is a user {name} already; `penstock user key create {name}` adds a key"
            ) from None
        return user, key, secret

    async def delete_user(self, name: str) -> None:
        async with self._turn():
            await self._delete_user(name)

    async def _delete_user(self, name: str) -> None:
        user, version = await self._found_user(name)
        others = [other for other in await self.users() if other.name != name]
        if user.root and others and not any(other.root and other.enabled for other in others):
            raise UserError(
                f"{name} is the last root, and other users exist: create another root first, or delete the others"
            )
        # The user first: its keys open nothing from then on, even if some of them stay behind.
        await self._guarded(self._store.delete(USERS + name, version), name)
        for key in await self.keys(name):
            await self._store.delete(KEYS + key.key_id)

    async def set_user_enabled(self, name: str, enabled: bool) -> User:
        async with self._turn():
            user, version = await self._found_user(name)
            if not enabled:
                await self._check_somebody_is_left(without_user=name)
            changed = msgspec.structs.replace(user, enabled=enabled)
            await self._guarded(self._store.put(USERS + name, encode(changed), version), name)
            return changed

    async def put_policy(self, name: str, policy_name: str, text: str) -> None:
        if not POLICY_NAME.fullmatch(policy_name):
            raise UserError(
                f"{policy_name!r} is not a policy name: use 1 to 128 letters, digits and _ + = , . @ -"
            )
        user, version = await self._found_user(name)
        changed = msgspec.structs.replace(user, policies={**user.policies, policy_name: text})
        await self._guarded(self._store.put(USERS + name, encode(changed), version), name)

    async def delete_policy(self, name: str, policy_name: str) -> None:
        user, version = await self._found_user(name)
        self.policy_of(user, policy_name)
        left = {one: text for one, text in user.policies.items() if one != policy_name}
        changed = msgspec.structs.replace(user, policies=left)
        await self._guarded(self._store.put(USERS + name, encode(changed), version), name)

    @staticmethod
    def policy_of(user: User, policy_name: str) -> str:
        if policy_name not in user.policies:
            raise NotFoundError(
                f"{user.name} has no policy {policy_name}; `penstock user show {user.name}` lists them"
            )
        return user.policies[policy_name]

    async def create_key(self, name: str, master_key: MasterKey) -> tuple[AccessKey, str]:
        return await self._put_new_key(await self.user(name), master_key)

    async def set_key_enabled(self, key_id: str, enabled: bool) -> AccessKey:
        async with self._turn():
            key, version = await self._found_key(key_id)
            if not enabled:
                await self._check_somebody_is_left(without_key=key_id)
            changed = msgspec.structs.replace(key, enabled=enabled)
            await self._guarded(self._store.put(KEYS + key_id, encode(changed), version), key_id)
            return changed

    async def delete_key(self, key_id: str) -> None:
        async with self._turn():
            _, version = await self._found_key(key_id)
            await self._check_somebody_is_left(without_key=key_id)
            await self._guarded(self._store.delete(KEYS + key_id, version), key_id)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One at a time: two who each take one of two roots away would both find the other one still there."""
        turn = await Election(self._store, "user-administration", "", TURN_SECONDS).campaign()
        try:
            yield
        finally:
            await turn.resign()

    async def _check_somebody_is_left(self, without_user: str = "", without_key: str = "") -> None:
        """A root that could sign before must not be the last one that can."""
        users = {user.user_id: user for user in await self.users()}
        able = [
            key
            for key in await self.keys()
            if key.enabled and (user := users.get(key.user_id)) is not None and user.root and user.enabled
        ]
        left = [key for key in able if key.key_id != without_key and key.user != without_user]
        if able and not left:
            raise UserError(
                "no root could sign requests any more: create another root with `penstock user create NAME --root`, "
                "or another key with `penstock user key create NAME`, first"
            )

    async def _put_new_key(self, user: User, master_key: MasterKey) -> tuple[AccessKey, str]:
        key, secret = new_access_key(user, master_key, self._token, self._now_ms())
        await self._store.put(KEYS + key.key_id, encode(key), ABSENT)
        return key, secret

    async def _found_user(self, name: str) -> tuple[User, int]:
        entry = await self._store.get(USERS + name)
        if entry is None:
            raise NotFoundError(f"there is no user {name}; `penstock user list` shows the users there are")
        return decode_user(entry.value), entry.version

    async def _found_key(self, key_id: str) -> tuple[AccessKey, int]:
        entry = await self._store.get(KEYS + key_id)
        if entry is None:
            raise NotFoundError(
                f"there is no access key {key_id}; `penstock user key list NAME` shows a user's keys"
            )
        return decode_key(entry.value), entry.version

    @staticmethod
    async def _guarded(writing: Awaitable[int], what: str) -> None:
        try:
            await writing
        except VersionConflictError:
            raise UserError(f"{what} was changed by somebody else at the same time: try again") from None
