"""One function opens every store by its URL, and says what is wrong with one that it cannot follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.metadata.opening import StoreUrlError, open_metadata_store
from penstock.metadata.remote.settings import MetadataUrlError, parse_metadata_url, read_secret
from penstock.metadata.remote.store import RemoteStore
from penstock.metadata.store.etcd import EtcdStore
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.metadata.store.memory import MemoryStore
from penstock.metadata.store.sqlite import SqliteStore
from tests.etcd_servers import EtcdServers
from tests.metadata.metadata_servers import SECRET, Servers
from tests.runtime.harness import async_test


@async_test
async def test_every_store_is_opened_by_its_url(tmp_path: Path, etcd: EtcdServers) -> None:
    async def memory() -> MemoryStore:
        return MemoryStore()

    servers = Servers(memory, "replicated")
    await servers.start(1)
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    named = servers.url(options=f"secret_file={tmp_path / 'secret'}")
    for url, secret, kind in (
        (f"sqlite:{tmp_path / 'metadata.sqlite'}", None, SqliteStore),
        ("memory:", None, MemoryStore),
        (etcd.url(), None, EtcdStore),
        (named, None, RemoteStore),
        (servers.url().removeprefix("penstock-"), SECRET, RemoteStore),
    ):
        store = await open_metadata_store(url, secret)
        assert isinstance(store, kind)
        version = await store.put("a", b"1")
        assert await store.get("a") == ("a", b"1", version)
        await store.close()
    await servers.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "no URL of a metadata store"),
        ("sqlite:", "no URL of a metadata store"),
        ("http://127.0.0.1", "no URL of a metadata store"),
        ("etcd://", "names no host"),
        ("penstock-metadata://", "names no host"),
        ("penstock-metadata://a:b", "names no host or port in 'a:b'"),
        ("penstock-metadata://a?x=1", "unknown option x"),
        ("penstock-metadata://a?timeout=0", "between 0.1 and 600"),
        ("penstock-metadata://a?secret_file=/nowhere/at/all", "cannot read the cluster's secret"),
    ],
)
@async_test
async def test_what_cannot_be_followed_is_explained(url: str, said: str) -> None:
    with pytest.raises(StoreUrlError, match=said):
        await open_metadata_store(url, SECRET)


@async_test
async def test_nobody_there_is_said_in_time() -> None:
    with pytest.raises(StoreUnavailableError, match=r"within 0\.3 s, try again .127\.0\.0\.1:1: "):
        await open_metadata_store("penstock-metadata://127.0.0.1:1?timeout=0.3", SECRET)


def test_a_url_says_everything(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef\n")
    settings = parse_metadata_url(f"penstock-metadata://one,[::1]:7,one:9327?secret_file={secret}&timeout=2")
    assert settings.addresses == ("one:9327", "[::1]:7")
    assert settings.timeout_seconds == 2
    assert settings.secret == b"0123456789abcdef"
    assert "0123456789abcdef" not in repr(settings)
    with pytest.raises(MetadataUrlError, match=r"add \?secret_file"):
        parse_metadata_url("penstock-metadata://one")
    secret.write_text("short\n")
    with pytest.raises(MetadataUrlError, match="too short"):
        read_secret(secret)
