"""Users, keys, their secrets, the directory that requests look them up in, and the master key's file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.request_limits import RequestLimit, check, decode, encode, key_of, limit_for, parse_key
from penstock.metadata.seals.master_key import (
    MasterKey,
    MasterKeyError,
    WrongMasterKeyError,
    load_master_key,
    load_or_make_master_key,
)
from penstock.metadata.store.interface import Listing
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from penstock.metadata.users.administration import NotFoundError, UserAdministration, UserError
from penstock.metadata.users.directory import UserDirectory
from penstock.metadata.users.users import KEYS, USERS, decode_key
from penstock.model.document import DOCUMENTS
from tests.runtime.harness import async_test, until

MASTER = MasterKey(bytes(32))


class World:
    """A store, those who administer it, and a directory over a mirror of it."""

    async def open(self) -> World:
        contents = MemoryContents()
        self.store = MemoryStore(contents)
        self.users = UserAdministration(self.store, os.urandom, lambda: 1_000)
        self.mirror = MetadataMirror(MemoryStore(contents))
        self.mirror.start()
        await self.mirror.ready.wait()
        self.directory = UserDirectory(self.mirror.cache, MASTER)
        return self

    async def heard(self) -> None:
        """Returns when the mirror has taken in what was done."""
        version = await self.store.put("mark", b"")
        await until(lambda: self.mirror.cache.version("mark") == version)


@async_test
async def test_a_key_is_found_until_it_or_its_user_is_disabled() -> None:
    world = await World().open()
    users, find = world.users, world.directory.find_key
    assert not world.directory.has_users()
    _, key, secret = await users.create_user("root", "000000000000", True, {}, MASTER)
    user, second, _ = await users.create_user("al", "123456789012", False, {"p": "{}"}, MASTER)
    await world.heard()
    assert world.directory.has_users()
    owner = find(key.key_id)
    assert owner is not None
    assert (owner.secret, owner.user.name, owner.policies) == (secret, "root", ())
    assert find(key.key_id) is owner
    assert secret not in repr(owner)
    assert (len(key.key_id), len(secret), len(user.user_id)) == (20, 40, 21)
    await users.set_user_enabled("al", False)
    await world.heard()
    assert find(second.key_id) is None
    await users.set_user_enabled("al", True)
    await world.heard()
    again = find(second.key_id)
    assert again is not None
    assert again.policies == ("{}",)
    await users.set_key_enabled(second.key_id, False)
    await world.heard()
    assert find(second.key_id) is None
    assert find("AKIAUNKNOWN") is None
    await world.mirror.close()


@async_test
async def test_a_user_made_anew_inherits_no_key() -> None:
    world = await World().open()
    await world.users.create_user("root", "000000000000", True, {}, MASTER)
    _, key, _ = await world.users.create_user("al", "000000000000", False, {}, MASTER)
    entry = await world.store.get(KEYS + key.key_id)
    assert entry is not None
    await world.users.delete_user("al")
    await world.store.put(entry.key, entry.value)  # as if it had been left behind
    await world.users.create_user("al", "000000000000", False, {}, MASTER)
    await world.heard()
    assert world.directory.find_key(key.key_id) is None
    await world.mirror.close()


@async_test
async def test_a_secret_of_another_master_key_is_as_if_unknown(caplog: pytest.LogCaptureFixture) -> None:
    world = await World().open()
    _, key, _ = await world.users.create_user("root", "000000000000", True, {}, MasterKey(b"x" * 32))
    await world.heard()
    assert world.directory.find_key(key.key_id) is None
    assert world.directory.find_key(key.key_id) is None
    assert len(caplog.records) == 1
    assert key.key_id in caplog.text
    await world.mirror.close()


@async_test
async def test_there_is_always_a_root_that_can_sign() -> None:
    users = UserAdministration(MemoryStore(), os.urandom, lambda: 1_000)
    with pytest.raises(UserError, match="first user must be a root"):
        await users.create_user("al", "000000000000", False, {}, MASTER)
    _, key, _ = await users.create_user("root", "000000000000", True, {}, MASTER)
    with pytest.raises(UserError, match="already"):
        await users.create_user("root", "000000000000", True, {}, MASTER)
    assert len(await users.keys()) == 1
    await users.create_user("al", "000000000000", False, {}, MASTER)
    with pytest.raises(UserError, match="last root"):
        await users.delete_user("root")
    for forbidden in (
        users.set_user_enabled("root", False),
        users.set_key_enabled(key.key_id, False),
        users.delete_key(key.key_id),
    ):
        with pytest.raises(UserError, match="no root could sign"):
            await forbidden
    second, _ = await users.create_key("root", MASTER)
    await users.delete_key(key.key_id)
    assert [one.key_id for one in await users.keys("root")] == [second.key_id]
    await users.delete_user("al")
    await users.delete_user("root")
    assert await users.keys() == []
    with pytest.raises(NotFoundError):
        await users.user("root")


class SlowStore(MemoryStore):
    """Lets others do something between reading a list and giving it out."""

    async def list(self, prefix: str) -> Listing:
        listing = await super().list(prefix)
        await asyncio.sleep(0)
        return listing


@async_test
async def test_two_who_each_delete_one_of_two_roots_leave_one() -> None:
    contents = MemoryContents()
    one, other = [UserAdministration(SlowStore(contents), os.urandom, lambda: 1_000) for _ in range(2)]
    for name in ("first", "second"):
        await one.create_user(name, "000000000000", True, {}, MASTER)
    await one.create_user("al", "000000000000", False, {}, MASTER)
    outcomes = await asyncio.gather(
        one.delete_user("first"), other.delete_user("second"), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [UserError]
    assert sum(user.root for user in await one.users()) == 1


def test_a_secret_is_bound_to_its_key() -> None:
    encrypted = MASTER.encrypt(b"secret", "AKIA1", os.urandom)
    assert MASTER.decrypt(encrypted, "AKIA1") == b"secret"
    for wrong, name in ((encrypted, "AKIA2"), (encrypted[:-1] + b"x", "AKIA1"), (b"", "AKIA1")):
        with pytest.raises(WrongMasterKeyError):
            MASTER.decrypt(wrong, name)


def test_the_master_key_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    file = tmp_path / "metadata.key"
    with pytest.raises(MasterKeyError, match="put the file back"):
        load_or_make_master_key(file, os.urandom, may_make=False)
    encrypted = load_or_make_master_key(file, os.urandom).encrypt(b"x", "k", os.urandom)
    assert load_or_make_master_key(file, os.urandom).decrypt(encrypted, "k") == b"x"
    assert [one.name for one in tmp_path.iterdir()] == ["metadata.key"]
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    with pytest.raises(MasterKeyError, match="chmod 600"):
        load_master_key(file)
    file.chmod(0o600)
    file.write_text("abc")
    with pytest.raises(MasterKeyError, match="64 hexadecimal digits"):
        load_master_key(file)


@async_test
async def test_a_limit_of_its_own_goes_before_the_one_for_all() -> None:
    mirror = MetadataMirror(MemoryStore())
    assert limit_for(mirror.cache, "user", "al") is None
    await mirror.put(key_of("user", None), encode(RequestLimit(1, 2)))
    await mirror.put(key_of("user", "al"), encode(RequestLimit(2.5, 3)))
    assert limit_for(mirror.cache, "user", "al") == RequestLimit(2.5, 3)
    assert limit_for(mirror.cache, "user", "bo") == RequestLimit(1, 2)
    assert limit_for(mirror.cache, "queue", "al") is None
    assert decode(encode(RequestLimit(0, 1))) == RequestLimit(0, 1)


def test_keys_of_limits_are_read_back() -> None:
    assert parse_key(key_of("queue", "a/b")) == ("queue", "a/b")
    assert parse_key(key_of("queue", None)) == ("queue", None)
    assert parse_key("limits/other/x") is None
    for bad in (RequestLimit(-1, 1), RequestLimit(float("nan"), 1), RequestLimit(1, 0)):
        with pytest.raises(ValueError, match="is"):
            check(bad)


@async_test
async def test_users_and_keys_keep_what_a_newer_version_put_there() -> None:
    world = await World().open()
    _, key, _ = await world.users.create_user("root", "000000000000", True, {}, MASTER)
    for name in (USERS + "root", KEYS + key.key_id):
        entry = await world.store.get(name)
        assert entry is not None
        await world.store.put(name, msgspec.json.encode({**msgspec.json.decode(entry.value), "badge": 7}))
    await world.users.put_policy("root", "p", "{}")
    user = await world.users.user("root")
    assert (user.later, user.policies) == ({"badge": 7}, {"p": "{}"})
    await world.heard()
    owner = world.directory.find_key(key.key_id)
    assert owner is not None, "the key opens what it opened before"
    entry = await world.store.get(KEYS + key.key_id)
    assert entry is not None
    assert decode_key(entry.value).later == {"badge": 7}


@async_test
async def test_a_user_that_needs_a_newer_version_is_nobody_here(caplog: pytest.LogCaptureFixture) -> None:
    world = await World().open()
    _, key, _ = await world.users.create_user("root", "000000000000", True, {}, MASTER)
    entry = await world.store.get(USERS + "root")
    assert entry is not None
    await world.store.put(
        USERS + "root", msgspec.json.encode({**msgspec.json.decode(entry.value), "needs": DOCUMENTS + 1})
    )
    await world.heard()
    assert world.directory.find_key(key.key_id) is None
    assert "this process is too old for it" in caplog.text
