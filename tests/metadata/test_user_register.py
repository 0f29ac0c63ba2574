"""Users in a store that somebody else can write to, who does not have the master key: nothing is gained by it.

The attacker has all that was ever in the store, may put back and delete what it likes, and may be a user itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.seals.master_key import MasterKey, MasterKeyError
from penstock.metadata.seals.sealing import look, seal_users
from penstock.metadata.seals.seals import front_end_sealers
from penstock.metadata.store.interface import Change, Entry
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from penstock.metadata.store.sealed import SealedStore, sealed
from penstock.metadata.users.administration import UserAdministration, UserError
from penstock.metadata.users.directory import KeyOwner, UserDirectory
from penstock.metadata.users.register import REGISTER_KEY, WriteTurns
from penstock.metadata.users.seen_register import SeenRegister
from penstock.metadata.users.users import KEYS, USERS, User, decode_user, encode
from tests.runtime.harness import async_test

MASTER = MasterKey(bytes(32))
ACCOUNT = "000000000000"
EVERYTHING = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}}'


class World:
    """A store, an administrator with the key, an attacker without it, and front ends."""

    def __init__(self, directory: Path) -> None:
        contents = MemoryContents()
        self.attacker = MemoryStore(contents)
        self.store = sealed(MemoryStore(contents), front_end_sealers(MASTER))
        self.seen = SeenRegister(directory / "metadata.key")
        self.now_ms = 1_000
        self.users = UserAdministration(self.store, os.urandom, lambda: self.now_ms, self.seen)

    async def front_end(self, seen: int | None = None) -> FrontEnd:
        """One that starts now."""
        return FrontEnd(self, await self._cache(), self.seen.load() if seen is None else seen)

    async def _cache(self) -> MetadataCache:
        cache = MetadataCache()
        cache.load(await self.store.list(""))
        return cache

    async def create(self, name: str, *, root: bool = False) -> str:
        policies = {} if root else {"p": EVERYTHING}
        _, key, _ = await self.users.create_user(name, ACCOUNT, root, policies, MASTER)
        return key.key_id

    async def everything(self) -> list[Entry]:
        """What the attacker has seen."""
        return [
            entry
            for entry in (await self.attacker.list("")).entries
            if not entry.key.startswith("elections/")
        ]

    async def put_back(self, *entries: Entry) -> None:
        for entry in entries:
            await self.attacker.put(entry.key, entry.value)


class FrontEnd:
    """Who lets users in; it hears of changes when it is told to listen."""

    def __init__(self, world: World, cache: MetadataCache, seen: int) -> None:
        self._world = world
        self._cache = cache
        self.directory = UserDirectory(cache, MASTER, seen, world.seen.note)

    async def hear(self) -> None:
        """Takes in everything that has changed, as a watch tells it."""
        listing = await self._world.store.list("")
        there = {entry.key for entry in listing.entries}
        for entry in self._cache.list(""):
            if entry.key not in there:
                self._cache.apply(Change(entry.key, None, listing.version))
        for entry in listing.entries:
            self._cache.apply(Change(*entry))

    async def owner(self, key_id: str) -> KeyOwner | None:
        await self.hear()
        return self.directory.find_key(key_id)


class PutsBackAtOnce:
    """The store of an administrator, where an attacker puts back every record of a user the moment it is changed or deleted."""

    def __init__(self, world: World, *keys: str) -> None:
        self._world = world
        self._keys = keys
        self._real = world.store

    async def __aenter__(self) -> None:
        world, real = self._world, self._real
        kept = {key: entry for key in self._keys if (entry := await world.attacker.get(key)) is not None}

        class Store(SealedStore):
            async def put(
                self, key: str, value: bytes, version: int | None = None, lease: int | None = None
            ) -> int:
                done = await real.put(key, value, version, lease)
                if key in kept:
                    await world.put_back(kept[key])
                return done

            async def delete(self, key: str, version: int | None = None) -> int:
                done = await real.delete(key, version)
                if key in kept:
                    await world.put_back(kept[key])
                return done

        store = Store(world.attacker, front_end_sealers(MASTER))
        world.users = UserAdministration(store, os.urandom, lambda: world.now_ms, world.seen)

    async def __aexit__(self, *_: object) -> None:
        world = self._world
        world.users = UserAdministration(self._real, os.urandom, lambda: world.now_ms, world.seen)


@async_test
async def test_a_user_that_is_put_back_while_it_is_deleted_stays_deleted(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create("ada", root=True)
    mallory = await world.create("mallory")
    front_end = await world.front_end()
    async with PutsBackAtOnce(world, USERS + "mallory", KEYS + mallory):
        await world.users.delete_user("mallory")
    assert await world.attacker.get(USERS + "mallory") is not None
    assert await front_end.owner(mallory) is None
    assert await (await world.front_end()).owner(mallory) is None
    await world.create("bob")  # the next change does not name it either
    assert await front_end.owner(mallory) is None
    assert [user.name for user in await world.users.users()] == ["ada", "bob"]


@async_test
async def test_a_key_that_is_put_back_while_it_is_deleted_opens_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create("ada", root=True)
    first = await world.create("mallory")
    second, _ = await world.users.create_key("mallory", MASTER)
    front_end = await world.front_end()
    async with PutsBackAtOnce(world, KEYS + first):
        await world.users.delete_key(first)
    assert await front_end.owner(first) is None
    assert await front_end.owner(second.key_id) is not None


@async_test
async def test_a_record_that_is_put_back_while_it_is_changed_gives_no_rights_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create("ada", root=True)
    mallory = await world.create("mallory")
    front_end = await world.front_end()
    async with PutsBackAtOnce(world, USERS + "mallory"):
        await world.users.delete_policy("mallory", "p")
    assert await front_end.owner(mallory) is None  # what stands there counts no more
    await world.users.delete_user("mallory")
    mallory = await world.create("mallory")
    async with PutsBackAtOnce(world, USERS + "mallory"):
        await world.users.set_user_enabled("mallory", False)
    assert await front_end.owner(mallory) is None


@async_test
async def test_what_a_change_left_half_done_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    """A change that failed after a write has said nothing about what it wrote."""
    world = World(tmp_path)
    await world.create("ada", root=True)
    with pytest.raises(UserError):
        await world.users.create_user("ada", ACCOUNT, True, {}, MASTER)
    bob = await world.create("bob")
    front_end = await world.front_end()
    assert await front_end.owner(bob) is not None
    assert {key.user for key in await world.users.keys()} == {"ada", "bob"}


@async_test
async def test_a_write_to_the_store_makes_nobody_root(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create("ada", root=True)
    mallory = await world.create("mallory")
    front_end = await world.front_end()
    owner = await front_end.owner(mallory)
    assert owner is not None
    assert not owner.user.root
    entry = await world.attacker.get(USERS + "mallory")
    assert entry is not None
    honest = decode_user(entry.value)
    forged = [
        encode(msgspec.structs.replace(honest, root=True, later=msgspec.UNSET)),
        encode(msgspec.structs.replace(honest, root=True)),
        entry.value.replace(b'"root":false', b'"root":true'),
        entry.value.replace(b'"account":"000000000000"', b'"account":"111111111111"'),
        entry.value[:-1] + b',"root":true}',
        b'{"root":true,' + entry.value[1:],
    ]
    for value in forged:
        await world.attacker.put(entry.key, value)
        assert await front_end.owner(mallory) is None
        assert await (await world.front_end()).owner(mallory) is None
        assert front_end.directory.has_users()
    await world.put_back(entry)
    again = await front_end.owner(mallory)
    assert again is not None
    assert not again.user.root


@async_test
async def test_a_made_up_user_lets_nobody_in(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create("ada", root=True)
    mallory = await world.create("mallory")
    made_up = User(name="eve", account=ACCOUNT, user_id="AIDAEVE", root=True, created_ms=1, number=1 << 60)
    await world.attacker.put(USERS + "eve", encode(made_up))
    entry = await world.attacker.get(KEYS + mallory)
    assert entry is not None
    stolen = entry.value.replace(b'"user":"mallory"', b'"user":"eve"')
    await world.attacker.put(KEYS + mallory, stolen)
    assert await (await world.front_end()).owner(mallory) is None
    assert await world.users.strange() == sorted([KEYS + mallory, USERS + "eve"])


@async_test
async def test_a_key_cannot_be_given_to_another_user_and_a_record_not_to_another_name(tmp_path: Path) -> None:
    world = World(tmp_path)
    ada = await world.create("ada", root=True)
    mallory = await world.create("mallory")
    entries = {entry.key: entry for entry in await world.everything()}
    adas, mallorys = entries[USERS + "ada"], entries[KEYS + mallory]
    ada_id = decode_user(adas.value).user_id.encode()
    mallory_id = decode_user(entries[USERS + "mallory"].value).user_id.encode()
    taken = mallorys.value.replace(b'"user":"mallory"', b'"user":"ada"').replace(mallory_id, ada_id)
    await world.attacker.put(mallorys.key, taken)
    front_end = await world.front_end()
    assert await front_end.owner(mallory) is None
    await world.put_back(mallorys)
    await world.attacker.put(USERS + "mallory", adas.value)  # a root's record under the other name
    assert await front_end.owner(mallory) is None
    await world.attacker.put(KEYS + mallory, entries[KEYS + ada].value)
    assert await front_end.owner(mallory) is None


@async_test
async def test_what_was_replaced_cannot_be_put_back(tmp_path: Path) -> None:
    """A user that was disabled, whose policies were taken away, whose key was disabled."""
    world = World(tmp_path)
    await world.create("ada", root=True)
    mallory = await world.create("mallory")
    before = {entry.key: entry for entry in await world.everything()}
    front_end = await world.front_end()
    for change in (
        world.users.set_user_enabled("mallory", False),
        world.users.set_user_enabled("mallory", True),
        world.users.delete_policy("mallory", "p"),
        world.users.set_key_enabled(mallory, False),
    ):
        await change
        await front_end.hear()
        after = {entry.key: entry for entry in await world.everything()}
        await world.put_back(before[USERS + "mallory"])
        assert await front_end.owner(mallory) is None
        assert await (await world.front_end()).owner(mallory) is None
        await world.put_back(after[USERS + "mallory"])
    await world.put_back(before[KEYS + mallory])
    assert await front_end.owner(mallory) is None


@async_test
async def test_what_was_deleted_cannot_be_put_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    ada = await world.create("ada", root=True)
    eve = await world.create("eve", root=True)
    before = await world.everything()
    await world.users.delete_user("eve")
    await world.put_back(*(entry for entry in before if entry.key in (USERS + "eve", KEYS + eve)))
    front_end = await world.front_end()
    assert await front_end.owner(eve) is None
    assert await front_end.owner(ada) is not None
    assert await world.users.strange() == sorted([KEYS + eve, USERS + "eve"])
    await world.users.put_policy("ada", "p", EVERYTHING)  # the next change blesses nothing that was put back
    assert await front_end.owner(eve) is None
    await world.users.delete_user("eve")
    assert await world.users.strange() == [KEYS + eve]
    await world.users.delete_key(eve)
    assert await world.users.strange() == []


@async_test
async def test_the_register_cannot_be_put_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With everything that it named: the whole store as it was, when mallory was a root."""
    world = World(tmp_path)
    ada = await world.create("ada", root=True)
    eve = await world.create("eve", root=True)
    before = await world.everything()
    await world.users.delete_user("eve")
    running = await world.front_end()
    assert await running.owner(ada) is not None
    await world.put_back(*before)
    assert await running.owner(eve) is None
    assert await running.owner(ada) is not None  # whom the newer one names too
    assert (
        "a process without the master key has changed it. The one that was seen still counts" in caplog.text
    )
    started = await world.front_end()
    assert started.directory.is_set_back
    assert await started.owner(eve) is None
    assert await started.owner(ada) is None  # who knows what else is older
    assert started.directory.has_users()
    with pytest.raises(UserError, match="a process without the master key restored"):
        await world.users.users()
    with pytest.raises(UserError, match="penstock user seal"):
        await world.users.create_user("bob", ACCOUNT, True, {}, MASTER)


@async_test
async def test_a_store_whose_users_were_deleted_is_not_one_without_users(tmp_path: Path) -> None:
    world = World(tmp_path)
    ada = await world.create("ada", root=True)
    running = await world.front_end()
    await running.hear()
    for entry in await world.everything():
        await world.attacker.delete(entry.key)
        await running.hear()
        assert running.directory.has_users()
        assert (await world.front_end()).directory.has_users()
    assert await running.owner(ada) is None


@async_test
async def test_the_last_user_leaves_an_open_server_where_an_administrator_deletes_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create("ada", root=True)
    running = await world.front_end()
    assert running.directory.has_users()
    await world.users.delete_user("ada")
    await running.hear()
    assert not running.directory.has_users()
    assert not (await world.front_end()).directory.has_users()
    ada = await world.create("ada", root=True)
    assert await running.owner(ada) is not None


@async_test
async def test_a_change_that_was_interrupted_before_the_register_counts(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.create("ada", root=True)
    register = await world.attacker.get(REGISTER_KEY)
    mallory = await world.create("mallory")
    assert register is not None
    world.seen.file.write_text("0\n")
    await world.put_back(register)  # as if it had not been written
    front_end = await world.front_end(seen=0)
    assert await front_end.owner(mallory) is not None
    await world.users.set_user_enabled("mallory", False)
    assert await front_end.owner(mallory) is None


@async_test
async def test_numbers_rise_whatever_the_clock_shows(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.now_ms = 5_000
    await world.create("ada", root=True)
    first = world.seen.load()
    assert first >= 5_000
    world.now_ms = 1
    await world.create("bob", root=True)
    assert world.seen.load() > first


def test_the_number_that_was_seen_only_rises(tmp_path: Path) -> None:
    seen = SeenRegister(tmp_path / "key")
    assert seen.load() == 0
    seen.note(7)
    seen.note(5)
    assert SeenRegister(tmp_path / "key").load() == 7
    assert seen.file.stat().st_mode & 0o777 == 0o600
    seen.file.write_text("many")
    with pytest.raises(MasterKeyError, match="does not hold the number"):
        seen.load()
    with pytest.raises(MasterKeyError, match="cannot write"):
        SeenRegister(tmp_path / "nowhere" / "key").note(1)


@async_test
async def test_who_is_vouched_for_looks_like_nobody_else(tmp_path: Path) -> None:
    """In a store without seals: records under other names than their own, or with names that play with a terminal."""
    world = World(tmp_path)
    honest = User(name="ada", account=ACCOUNT, user_id="AIDAADA", root=True, created_ms=1)
    for place, user in (
        (USERS + "ada", honest),
        (USERS + "eve", honest),
        (USERS + "\x1b[2Kbob", msgspec.structs.replace(honest, name="\x1b[2Kbob")),
        (USERS + "sam", msgspec.structs.replace(honest, name="sam", account="everything")),
    ):
        await world.attacker.put(place, encode(user))
    found = await look(world.attacker, MASTER)
    assert list(found.users) == [USERS + "ada"]
    assert sorted(found.unreadable) == [USERS + "\x1b[2Kbob", USERS + "eve", USERS + "sam"]
    await seal_users(world.attacker, MASTER, found, lambda: 1_000, world.seen)
    assert [user.name for user in await world.users.users()] == ["ada"]
    assert len(await world.users.strange()) == 3


def test_a_write_that_others_are_quicker_with_is_tried_a_few_times() -> None:
    turns = WriteTurns(3)
    assert [turns.lost() for _ in range(3)] == [True, True, False]
