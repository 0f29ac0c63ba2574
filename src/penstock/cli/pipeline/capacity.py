"""Writes the table `capacity` into a cluster's metadata: one small document for each queue, for its manager."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.exits import UNREACHABLE, USAGE, CommandError

if TYPE_CHECKING:
    from penstock.cluster.layout.entries import CapacityEntry


def write_back(warehouse: str, metadata: str, secret_file: str | None) -> int:
    """How many queues were written."""
    from penstock.metadata.opening import StoreUrlError
    from penstock.metadata.remote.settings import MetadataUrlError, read_secret
    from penstock.metadata.store.interface import StoreUnavailableError

    try:
        secret = None if secret_file is None else read_secret(Path(secret_file))
        return asyncio.run(_write(entries(warehouse), metadata, secret))
    except (StoreUrlError, MetadataUrlError) as error:
        raise CommandError(str(error), USAGE) from None
    except StoreUnavailableError as error:
        raise CommandError(
            f"{error}. The table is written; run the job again to hand it over.", UNREACHABLE
        ) from None


def check_metadata(metadata: str, secret_file: str | None) -> None:
    """Whether it has the form of a store's URL, and its files exist: before a run, not after it. It connects nowhere."""
    from penstock.metadata.opening import NO_STORE
    from penstock.metadata.remote.settings import SCHEMES, MetadataUrlError, parse_metadata_url, read_secret
    from penstock.metadata.store.etcd_settings import EtcdUrlError, parse_etcd_url

    scheme, _, rest = metadata.partition(":")
    try:
        secret = None if secret_file is None else read_secret(Path(secret_file))
        if scheme in ("etcd", "etcds"):
            parse_etcd_url(metadata)
        elif scheme in SCHEMES:
            parse_metadata_url(metadata, secret)
        elif not (scheme == "sqlite" and rest) and metadata != "memory:":
            raise CommandError(NO_STORE.format(url=metadata), USAGE)
    except (EtcdUrlError, MetadataUrlError) as error:
        raise CommandError(str(error), USAGE) from None


def entries(warehouse: str) -> list[CapacityEntry]:
    """The table as documents."""
    import pyarrow.dataset as ds

    from penstock.cluster.layout.entries import CapacityEntry
    from penstock.pipeline.jobs.capacity import CAPACITY
    from penstock.pipeline.warehouse.arrow_files import file_system, reading

    system, place = file_system(warehouse)
    root = f"{place}/{CAPACITY.name}"
    with reading(warehouse):
        table = ds.dataset(root, filesystem=system, format="parquet").to_table(columns=list(CAPACITY.names))
    rows: list[dict[str, Any]] = table.to_pylist()
    return [
        CapacityEntry(
            queue=row["queue"],
            measured_ms=_milliseconds(row["measured"]),
            messages=row["messages"],
            bytes=row["bytes"],
            messages_per_hour=row["messages_per_hour"] or 0.0,
            bytes_per_hour=row["bytes_per_hour"] or 0.0,
            limit=row["limit"],
            fill=row["fill"],
            full_at_ms=None if row["full_at"] is None else _milliseconds(row["full_at"]),
            partitions=row["partitions"],
            recommended_partitions=row["recommended_partitions"] or row["partitions"],
            growth_known=row["messages_per_hour"] is not None,
        )
        for row in rows
    ]


async def _write(found: list[CapacityEntry], metadata: str, secret: bytes | None) -> int:
    from penstock.cluster.layout.entries import CAPACITY, capacity_key, encode
    from penstock.metadata.opening import open_metadata_store

    store = await open_metadata_store(metadata, secret)
    try:
        wanted = {capacity_key(entry.queue): encode(entry) for entry in found}
        there = {entry.key: entry.value for entry in (await store.list(CAPACITY)).entries}
        for key in there.keys() - wanted.keys():
            await store.delete(key)
        for key, value in wanted.items():
            if there.get(key) != value:
                await store.put(key, value)
        return len(wanted)
    finally:
        await store.close()


def _milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1000)
