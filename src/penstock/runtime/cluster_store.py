"""The metadata store of a cluster by its URL, and the secret that its processes share."""

from __future__ import annotations

from pathlib import Path

from penstock.metadata.opening import StoreUrlError, open_metadata_store
from penstock.metadata.remote.settings import MetadataUrlError, read_secret
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.runtime.listening import StartError


async def open_cluster_store(url: str, secret: bytes) -> MetadataStore:
    """The store of a URL; raises `StartError`."""
    try:
        return await open_metadata_store(url, secret)
    except StoreUrlError as error:
        raise StartError(f"cannot use --cluster {url}: {error}") from None
    except StoreUnavailableError as error:
        raise StartError(f"cannot reach the cluster's metadata at {url}: {error}") from None


def cluster_secret(file: str) -> bytes:
    """The cluster's secret; raises `StartError`."""
    try:
        return read_secret(Path(file))
    except MetadataUrlError as error:
        raise StartError(str(error)) from None
