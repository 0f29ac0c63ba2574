"""Opens a metadata store by its URL:

sqlite:PATH                      a file, for one machine
etcd://HOST:PORT,…/NAMESPACE     an etcd (`etcds://` over TLS)
penstock-metadata://HOST:PORT,…  metadata servers (`metadata://` for short)
memory:                          nothing that lasts, for tests
"""

from __future__ import annotations

from pathlib import Path

from penstock.metadata.remote.connection import Dial, dial_plainly
from penstock.metadata.remote.settings import SCHEMES, MetadataUrlError
from penstock.metadata.store.etcd_settings import EtcdUrlError, without_password
from penstock.metadata.store.interface import MetadataStore

NO_STORE = (
    "{url!r} is no URL of a metadata store; write sqlite:PATH, etcd://HOST:PORT, etcds://HOST:PORT or "
    "penstock-metadata://HOST:PORT"
)


class StoreUrlError(ValueError):
    """The URL is invalid; the message says what to write instead."""


async def open_metadata_store(
    url: str, secret: bytes | None = None, dial: Dial = dial_plainly
) -> MetadataStore:
    """The store of a URL; `secret` is the cluster's, for metadata servers whose URL names no file with it, and `dial` opens
    their connections.

    Raises `StoreUrlError`, or `StoreUnavailableError` if no server answers there.
    """
    scheme, colon, rest = url.partition(":")
    try:
        if scheme in ("etcd", "etcds") and colon:
            from penstock.metadata.store.etcd import open_etcd_store

            return await open_etcd_store(url)
        if scheme in SCHEMES and colon:
            from penstock.metadata.remote.store import open_remote_store

            return await open_remote_store(url, secret, dial)
    except (EtcdUrlError, MetadataUrlError) as error:
        raise StoreUrlError(str(error)) from error
    if scheme == "sqlite" and rest:
        from penstock.metadata.store.sqlite import open_sqlite_store

        return await open_sqlite_store(Path(rest.removeprefix("//")))
    if scheme == "memory" and colon and not rest:
        from penstock.metadata.store.memory import MemoryStore

        return MemoryStore()
    raise StoreUrlError(NO_STORE.format(url=without_password(url)))
