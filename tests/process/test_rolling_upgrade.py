"""Processes of this version beside one of a version that is yet to come, which a test plays that writes into the real store."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import penstock
from penstock.cluster.layout.entries import decode_partition, decode_queue, partition_key, queue_key
from penstock.metadata.store.interface import MetadataStore, VersionConflictError
from penstock.model.document import DOCUMENTS
from penstock.model.errors import ErrorCode, PenstockError
from tests.etcd_servers import EtcdServers
from tests.process.few_programs import few_programs
from tests.process.test_cluster_nodes import Program

PATIENCE_SECONDS = 300
SENTENCE = (
    "queue 'orders': a newer Penstock wrote it, and this process is too old for it (it needs version "
    f"{DOCUMENTS + 1} of the documents, this one knows {DOCUMENTS}): upgrade this process"
)


async def scenario(url: str, place: Path) -> None:
    async with few_programs(url, place, 2, seconds=PATIENCE_SECONDS) as (client, nodes, store, _):
        await serve_with_a_field_of_the_future(client, nodes, store)
        await refuse_what_needs_a_newer_version(client, store)


async def plant(store: MetadataStore, key: str, **settings: Any) -> None:
    """As a newer process does: it changes the entry on condition that it is the one that was read, and tries again."""
    while True:
        entry = await store.get(key)
        assert entry is not None
        fields = msgspec.json.decode(entry.value)
        fields["settings"].update(settings)
        fields["planted"] = 1
        try:
            await store.put(key, msgspec.json.encode(fields), entry.version)
            return
        except VersionConflictError:
            continue


async def stored(store: MetadataStore, queue: str) -> list[Any]:
    """The entries of a queue and of its one partition."""
    entry = await store.get(queue_key(queue))
    assert entry is not None
    found = decode_queue(entry.value)
    (number,) = found.partitions
    partition = await store.get(partition_key(number))
    assert partition is not None
    return [found, decode_partition(partition.value)]


async def serve_with_a_field_of_the_future(
    client: penstock.Client, nodes: dict[str, Program], store: MetadataStore
) -> None:
    """It is served, altered, handed to another primary and read back from disk, and the field is there all the while."""
    queue = await client.create_queue("orders", replicas=2, min_in_sync=1)
    await queue.send(b"before")
    (number,) = (await stored(store, "orders"))[0].partitions
    await plant(store, queue_key("orders"), flavour="sweet")
    await plant(store, partition_key(number), flavour="sweet")
    await queue.send(b"after")
    await client.alter_queue("orders", max_messages=1_000)
    primary = (await stored(store, "orders"))[1].primary
    await nodes[primary].end(signal.SIGKILL)
    await queue.send(b"after the failover")
    await nodes[primary].start()
    while len((await stored(store, "orders"))[1].in_sync) < 2:
        await queue.send(b"until it is in sync")
    for entry in await stored(store, "orders"):
        assert entry.settings.max_messages == 1_000
        assert (entry.later, entry.settings.later) == ({"planted": 1}, {"flavour": "sweet"})
    described = await queue.describe()
    assert described.settings.later == {"flavour": "sweet"}, (
        "the primary has it, and a client of this version reads on"
    )
    bodies = {message.body for message in await queue.receive(3)}
    assert bodies == {b"before", b"after", b"after the failover"}


async def first_refusal(client: penstock.Client, queue: str) -> PenstockError:
    """What a client is told of a queue as soon as the front end has heard of the change."""
    while True:
        try:
            await client.describe_queue(queue)
        except PenstockError as error:
            return error


async def refuse_what_needs_a_newer_version(client: penstock.Client, store: MetadataStore) -> None:
    """The queue is refused in one sentence; the others go on."""
    others = await client.create_queue("others", replicas=2)
    (number,) = (await stored(store, "orders"))[0].partitions
    await plant(store, partition_key(number), needs=DOCUMENTS + 1)
    await plant(store, queue_key("orders"), needs=DOCUMENTS + 1)
    refused = await first_refusal(client, "orders")
    assert (refused.code, refused.message) == (ErrorCode.UNSUPPORTED_VERSION, SENTENCE)
    with pytest.raises(PenstockError, match="too old for it"):
        await client.create_queue("orders")
    await others.send(b"still")
    assert [message.body for message in await others.receive()] == [b"still"]


def test_a_cluster_lives_with_what_a_newer_version_wrote(etcd: EtcdServers, tmp_path: Path) -> None:
    asyncio.run(scenario(etcd.url(), tmp_path))
