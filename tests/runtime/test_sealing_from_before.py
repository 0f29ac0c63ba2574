"""A server over a file of metadata that a version without seals wrote: its users come along once, and nobody slips in later."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock.config.serve import ServeConfig
from penstock.frontend.queues.metadata import QueueMetadata, key_of
from penstock.frontend.queues.metadata import encode as encode_metadata
from penstock.metadata.seals.master_key import MasterKey, load_or_make_master_key
from penstock.metadata.store.sqlite import open_sqlite_store
from penstock.metadata.users.register import REGISTER_KEY
from penstock.metadata.users.users import KEYS, USERS, User, new_access_key
from penstock.model.errors import PenstockError
from penstock.runtime.embedded import running_server
from penstock.runtime.processes.listening import StartError
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from tests.runtime.harness import async_test, small_config

ACCOUNT = "000000000000"


def as_before(record: msgspec.Struct) -> bytes:
    """As a version without seals wrote it: without a number, too."""
    fields = msgspec.to_builtins(record)
    fields.pop("number", None)
    return msgspec.json.encode(fields)


class Before:
    """A data directory of an earlier version."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(mode=0o700)
        self.file = directory / "metadata.sqlite"
        self.key: MasterKey = load_or_make_master_key(directory / "metadata.key", os.urandom)
        self.seen = directory / "metadata.key.seen"

    async def put(self, key: str, value: bytes) -> None:
        store = await open_sqlite_store(self.file)
        await store.put(key, value)
        await store.close()

    async def raw(self, key: str) -> bytes | None:
        store = await open_sqlite_store(self.file)
        entry = await store.get(key)
        await store.close()
        return entry.value if entry is not None else None

    async def user(self, name: str, *, root: bool = False) -> tuple[str, str]:
        """A user; its key and secret."""
        user = User(name=name, account=ACCOUNT, user_id=f"AIDA{name}", root=root, created_ms=1, policies={})
        key, secret = new_access_key(user, self.key, secrets.token_bytes, 1)
        await self.put(USERS + name, as_before(user))
        await self.put(KEYS + key.key_id, as_before(key))
        return key.key_id, secret


def config() -> ServeConfig:
    return small_config(sqs_listen=None)


async def is_let_in(directory: Path, key: str, secret: str) -> bool:
    async with running_server(directory, config()) as server:
        try:
            async with penstock.connect(server.url, access_key=key, secret_key=secret, timeout=1) as client:
                await client.describe_node()
        except PenstockError:
            return False
        return True


@async_test
async def test_users_of_before_come_along(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = Before(tmp_path / "data")
    ada = await before.user("ada", root=True)
    metadata = QueueMetadata(queue_id=7, attributes=QueueAttributes(), modified_ms=1)
    await before.put(key_of("orders"), encode_metadata(metadata))
    assert await is_let_in(before.directory, *ada)
    assert "1 users (roots: ada), 1 access keys, 1 queue entries" in caplog.text
    for key in (USERS + "ada", KEYS + ada[0], key_of("orders"), REGISTER_KEY):
        assert b'"seal":"' in (await before.raw(key) or b"")
    assert int(before.seen.read_text()) > 0
    assert await is_let_in(before.directory, *ada)


@async_test
async def test_who_comes_without_a_seal_afterwards_is_not_let_in(tmp_path: Path) -> None:
    before = Before(tmp_path / "data")
    ada = await before.user("ada", root=True)
    assert await is_let_in(before.directory, *ada)
    eve = await before.user(
        "eve", root=True
    )  # whoever can write to the file, and reads no key, cannot do so; but if
    assert not await is_let_in(before.directory, *eve)
    store = await open_sqlite_store(before.file)
    await store.delete(REGISTER_KEY)  # as if it had never been sealed
    await store.close()
    assert not await is_let_in(before.directory, *eve)
    assert not await is_let_in(before.directory, *ada)  # everything is doubted, and the log says what to do


@async_test
async def test_a_file_that_others_could_have_written_to_is_not_believed(tmp_path: Path) -> None:
    before = Before(tmp_path / "data")
    ada = await before.user("ada", root=True)
    before.file.chmod(0o620)
    with pytest.raises(StartError, match=r"others may have changed them since.*penstock user seal"):
        await is_let_in(before.directory, *ada)
    before.file.chmod(0o600)
    assert await is_let_in(before.directory, *ada)


@async_test
async def test_a_server_without_users_needs_nothing(tmp_path: Path) -> None:
    before = Before(tmp_path / "data")
    async with running_server(before.directory, config()) as server, penstock.connect(server.url) as client:
        await client.create_queue("orders")
    assert not before.seen.exists()
    assert await before.raw(REGISTER_KEY) is None


@async_test
async def test_another_master_key_is_named(tmp_path: Path) -> None:
    before = Before(tmp_path / "data")
    ada = await before.user("ada", root=True)
    assert await is_let_in(before.directory, *ada)
    (before.directory / "metadata.key").write_text(secrets.token_hex(32))
    with pytest.raises(StartError, match="is not the master key"):
        await is_let_in(before.directory, *ada)


@async_test
async def test_a_directory_that_everybody_may_write_to_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "data"
    directory.mkdir(mode=0o700)
    async with running_server(directory, small_config()):
        pass
    assert "chmod 700" not in caplog.text
    directory.chmod(0o777)
    async with running_server(directory, small_config()):
        pass
    assert f"run `chmod 700 {directory}`" in caplog.text
