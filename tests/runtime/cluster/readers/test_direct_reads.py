"""Logs read straight from a node: what comes is what the front end would have answered, and the front end is not in the way."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

import penstock
from penstock.client.log import node_reads
from penstock.client.log.node_reads import connect_to_node
from penstock.cluster.layout.entries import DrainEntry, drain_key, encode
from penstock.model.partition_numbers import partition_of
from penstock.model.records import NumbersSkipped
from penstock.queue.decisions.decision import PendingRecord
from penstock.runtime.embedded import running_server
from penstock.runtime.local_cluster.certificates import ThrowAwayAuthority
from tests.runtime.cluster.readers.cluster import Readable, Wire, readable_cluster
from tests.runtime.harness import async_test, small_config

MESSAGES = 2_000
BODIES = [b"%05d" % number + bytes(500) for number in range(MESSAGES)]
SIZE = sum(map(len, BODIES))


async def a_log(cluster: Readable, partitions: int = 3) -> penstock.Queue:
    """A log with messages in every partition."""
    queue = await cluster.client.create_queue(
        "clicks", consumption="log", partitions=partitions, replicas=1, min_in_sync=1
    )
    for first in range(0, MESSAGES, 100):
        await queue.send_batch(BODIES[first : first + 100])
    return queue


async def read(log: penstock.Log, *, direct: bool) -> list[tuple[int, bytes]]:
    """All messages, with their numbers."""
    found: list[tuple[int, bytes]] = []
    async for piece in log.batches(direct=direct, slice_bytes=20_000):
        found += zip(range(piece.first, piece.next), piece.bodies(), strict=True)
    return sorted(found)


@async_test
async def test_the_same_is_read_and_does_not_pass_the_front_end(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        log = (await a_log(cluster)).log()
        through = await read(log, direct=False)
        assert log.direct_bytes == 0
        passed_before = cluster.front.back_bytes
        direct = await read(log, direct=True)
        assert direct == through
        assert sorted(body for _, body in direct) == BODIES
        assert {partition_of(number) for number, _ in direct} == {0, 1, 2}
        assert log.direct_bytes > SIZE
        assert cluster.front.back_bytes - passed_before < SIZE // 20
        assert cluster.node.readers is not None
        assert cluster.node.readers.totals.readers == 3
        assert cluster.node.readers.totals.sent_bytes > SIZE


@async_test
async def test_ranges_limits_and_single_messages_are_read_the_same_way(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        log = (await a_log(cluster, 2)).log()
        part = (await log.partitions())[1]
        start, stop = part.begin + 7, part.end - 5
        some = [message.sequence async for message in log.messages(start=start, stop=stop, direct=True)]
        assert some == list(range(start, stop))
        assert len([message async for message in log.messages(limit=11, direct=True)]) == 11
        with pytest.raises(penstock.PenstockError, match="omit direct"):
            log.messages(group="billing", direct=True)


@async_test
async def test_who_follows_a_log_is_told_of_new_messages_by_the_node(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 1)
        async with queue.log().messages(start="end", follow=True, direct=True) as messages:
            for number in range(3):
                await queue.send(b"new %d" % number)
                assert (await anext(messages)).body == b"new %d" % number
        assert queue.log().direct_bytes > 0


@async_test
async def test_what_retention_has_removed_is_said(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 1)
        log = queue.log()
        assert len(await read(log, direct=True)) == MESSAGES
        await queue.purge()
        with pytest.raises(penstock.OffsetGone) as caught:
            async for _ in log.batches(start=5, direct=True):
                pass
        assert caught.value.begin == MESSAGES + 1
        await queue.send(b"more")
        again = [message.body async for message in log.messages(start=5, when_gone="earliest", direct=True)]
        assert again == [b"more"]


@async_test
async def test_a_port_that_cannot_be_reached_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster)
        assert cluster.node.readers is not None
        cluster.node.readers.close()
        assert [
            body for _, body in sorted(await read(queue.log(), direct=True), key=lambda one: one[1])
        ] == BODIES
        assert queue.log().direct_bytes == 0
        assert "through the front end" in caplog.text


@async_test
async def test_a_cluster_without_ports_for_readers_is_read_through_the_front_end(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path, reader_listen=None) as cluster:
        queue = await a_log(cluster)
        assert not (await cluster.place(queue)).address
        assert len(await read(queue.log(), direct=True)) == MESSAGES
        assert queue.log().direct_bytes == 0


@async_test
async def test_a_connection_that_ends_in_the_middle_loses_and_repeats_nothing(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 2)
        found: list[bytes] = []
        server = cluster.node.readers
        assert server is not None
        async for piece in queue.log().batches(direct=True, slice_bytes=5_000, in_flight=8):
            found += piece.bodies()
            if len(found) % 3 == 0:  # again and again, whenever there is a connection
                for reader in list(server.sessions):
                    reader.end()
            await asyncio.sleep(0)
        assert sorted(found) == BODIES


@async_test
async def test_with_certificates_the_port_speaks_tls_to_readers_who_have_none(tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    files = ThrowAwayAuthority(tmp_path / "tls").files("node-1")
    (tmp_path / "other").mkdir()
    other = ThrowAwayAuthority(tmp_path / "other").files("node-1")
    certificates: dict[str, Any] = {
        "cluster_tls_certificate": str(files.certificate),
        "cluster_tls_key": str(files.key),
        "cluster_tls_ca": str(files.authority),
    }
    async with readable_cluster(tmp_path, **certificates) as cluster:
        queue = await a_log(cluster, 2)
        place = await cluster.place(queue)
        assert place.authority == files.authority.read_text()
        assert len(await read(queue.log(), direct=True)) == MESSAGES
        assert queue.log().direct_bytes > SIZE
        assert cluster.node.cluster_tls is not None
        cluster.node.cluster_tls.reload()  # those who come later are greeted with what was loaded
        loop = asyncio.get_running_loop()
        (await connect_to_node(place, 0, loop, lambda _: None)).close()
        fooled = msgspec.structs.replace(place, authority=other.authority.read_text())
        with pytest.raises(ssl.SSLCertVerificationError):
            await connect_to_node(fooled, 0, loop, lambda _: None)
        with pytest.raises(ConnectionError):
            await connect_to_node(msgspec.structs.replace(place, authority=""), 0, loop, lambda _: None)


@async_test
async def test_a_node_that_falls_silent_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_reads, "LOOK_SECONDS", 0.1)
    wire = Wire()
    await wire.open()
    async with readable_cluster(tmp_path, reader_advertise=wire.address) as cluster:
        assert cluster.node.reader_address is not None
        wire.target = cluster.node.reader_address
        queue = await a_log(cluster, 2)
        found: list[bytes] = []
        async for piece in queue.log().batches(direct=True, slice_bytes=5_000):
            found += piece.bodies()
            if len(found) > MESSAGES // 2:
                wire.passes.clear()
        assert sorted(found) == BODIES
        assert 0 < queue.log().direct_bytes < SIZE
        wire.passes.set()
        wire.close()


@async_test
async def test_a_partition_that_moves_is_read_on_and_then_at_its_new_node(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path, nodes=2) as cluster:
        queue = await a_log(cluster, 1)
        log = queue.log()
        async with log.messages(follow=True, direct=True) as messages:
            found = [(await anext(messages)).body for _ in range(MESSAGES)]
            assert found == BODIES
            place = await cluster.place(queue)
            (before,) = [
                name for name, node in cluster.nodes.items() if str(node.reader_address) == place.address
            ]
            await cluster.store.put(drain_key(before), encode(DrainEntry(node=before)))
            number = 0
            other = next(node for name, node in cluster.nodes.items() if name != before)
            assert other.readers is not None
            while other.readers.totals.sent_bytes < 10_000:  # the welcome alone is less
                await queue.send(b"%d" % number + bytes(1_000))
                assert (await anext(messages)).body == b"%d" % number + bytes(1_000)
                number += 1
        assert [message.sequence async for message in log.messages(direct=True)] == [
            *range(1, MESSAGES + number + 1)
        ]


@async_test
async def test_a_single_server_is_read_as_ever(tmp_path: Path) -> None:
    config = small_config(sqs_listen=None)
    async with running_server(tmp_path, config) as server, penstock.connect(server.url) as client:
        queue = await client.create_queue("clicks", consumption="log")
        await queue.send_batch(BODIES[:100])
        assert [body for _, body in await read(queue.log(), direct=True)] == BODIES[:100]
        assert queue.log().direct_bytes == 0

    def blocking(url: str) -> list[bytes]:
        with penstock.connect_blocking(url) as client:
            log = client.queue("clicks").log()
            assert log.direct_bytes == 0
            assert sum(len(piece) for piece in log.batches(direct=True)) == 100
            return [message.body for message in log.messages(direct=True)]

    async with running_server(tmp_path, config) as server:
        assert await asyncio.to_thread(blocking, server.url) == BODIES[:100]


@async_test
async def test_numbers_that_are_left_out_are_passed_over_by_node_and_front_end(tmp_path: Path) -> None:
    """As after a failover of an `async` log."""
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 2)
        log = queue.log()
        ends = [part.end for part in await log.partitions()]
        parts = cluster.node._node.replication.state.parts
        for partition in list(parts.catalogue.partitions.values()):
            if partition.name.startswith("clicks"):
                parts.write(partition, [PendingRecord(NumbersSkipped(partition.table.next + (1 << 30), 1))])
        for first in range(0, MESSAGES, 100):
            await queue.send_batch(BODIES[first : first + 100])
        for part, end in zip(await log.partitions(), ends, strict=True):
            assert part.gaps == ((end, end + (1 << 30)),)
            behind = [message.sequence async for message in log.messages(start=end + 5, direct=True)]
            assert behind == list(range(end + (1 << 30), part.end)), "an offset of before"
        through, direct = await read(log, direct=False), await read(log, direct=True)
        assert through == direct
        assert sorted(body for _, body in direct) == sorted([*BODIES, *BODIES])
        assert sum(part.messages for part in await log.partitions()) == 2 * MESSAGES
        newest = [message.sequence async for message in log.messages(start=await log.newest(MESSAGES + 500))]
        assert len(newest) == MESSAGES + 500
