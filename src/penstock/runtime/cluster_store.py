"""The metadata store of a cluster by its URL, and the secret that its processes share."""

from __future__ import annotations

from pathlib import Path

from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.etcd_settings import EtcdUrlError
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.runtime.listening import StartError
from penstock.wire.handshake import SECRET_BYTES_AT_LEAST


async def open_cluster_store(url: str) -> MetadataStore:
    """The store of a URL; raises `StartError`."""
    try:
        return await open_etcd_store(url)
    except EtcdUrlError as error:
        raise StartError(f"cannot use --cluster {url}: {error}") from None
    except StoreUnavailableError as error:
        raise StartError(f"cannot reach the cluster's metadata at {url}: {error}") from None


def read_secret(file: str) -> bytes:
    """The cluster's secret; raises `StartError`."""
    try:
        secret = Path(file).read_bytes().strip()
    except OSError as error:
        raise StartError(f"cannot read the cluster's secret from {file}: {error.strerror or error}") from None
    if len(secret) < SECRET_BYTES_AT_LEAST:
        raise StartError(
            f"the cluster's secret in {file} has {len(secret)} bytes; it needs {SECRET_BYTES_AT_LEAST} or more"
        )
    return secret
