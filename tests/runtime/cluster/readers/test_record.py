"""What is read at a node is on record: rows of usage with whose ticket it was, and how many messages and bytes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyarrow import ipc

import penstock
from penstock.runtime.cluster import reader_server
from penstock.runtime.cluster.reader_record import ACTION, ReaderRecord
from penstock.wire.log_messages import LocateLog, LogAddress, LogSlice, ReadLog
from penstock.wire.read_ticket import Holder, encode_holder
from tests.runtime.cluster.readers.cluster import Readable, readable_cluster
from tests.runtime.cluster.readers.test_direct_reads import MESSAGES, SIZE, a_log, read
from tests.runtime.cluster.readers.test_reader_server import visitor
from tests.runtime.cluster.readers.test_users import ACCOUNT, CLICKS, user
from tests.runtime.harness import async_test, until


async def rows(client: penstock.Client, *, direct: bool = False) -> list[dict[str, Any]]:
    """What the log has of reads at the node."""
    bodies = [bytes(one.body) async for one in client.queue("penstock.usage").log().messages(direct=direct)]
    found: list[dict[str, Any]] = []
    for body in bodies:
        found += ipc.open_stream(body).read_all().to_pylist()
    return [row for row in found if row["action"] == ACTION]


def record_of(cluster: Readable) -> ReaderRecord:
    """The node's."""
    record = cluster.node.reader_record
    assert record is not None
    return record


async def all_reported(cluster: Readable) -> None:
    """Waits until the log has every row that the node has written."""
    record = record_of(cluster)
    await until(lambda: record.totals().recorded > 0 and record.totals().waiting == 0)


@async_test
async def test_what_is_read_with_a_ticket_is_on_record_under_its_holder(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        await a_log(cluster, 2)
        root = await user(cluster, "ada", "*", root=True)
        key, secret = await user(cluster, "reader", "GetQueueAttributes", "ReceiveMessage")
        url = f"penstock://{cluster.front.address}"
        async with penstock.connect(url, access_key=key, secret_key=secret) as client:
            log = client.queue("clicks").log()
            assert len(await read(log, direct=True)) == MESSAGES
            got = log.direct_bytes
        server = cluster.node.readers
        assert server is not None
        await until(lambda: server.totals.readers == 0)  # a row is written when a reader leaves
        await all_reported(cluster)
        async with penstock.connect(url, access_key=root[0], secret_key=root[1]) as client:
            found = await rows(client)
        assert len(found) >= 2  # partitions
        assert {(row["account"], row["user"], row["queue"]) for row in found} == {(ACCOUNT, "reader", CLICKS)}
        assert {(row["address"], row["outcome"]) for row in found} == {("127.0.0.1", "ok")}
        assert sum(row["messages"] for row in found) == MESSAGES
        assert sum(row["bytes_out"] for row in found) >= got > SIZE
        assert all(row["bytes_in"] > 0 and row["front_end"].startswith("node-1/") for row in found)


@async_test
async def test_rows_are_written_while_a_reader_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_server, "ROW_SECONDS", 0.05)
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 1)
        async with queue.log().messages(follow=True, direct=True) as messages:
            for _ in range(MESSAGES):
                await anext(messages)
            await all_reported(cluster)
            await queue.send(b"one more")
            await anext(messages)
            counted = 0
            while counted < MESSAGES + 1:
                counted = sum(row["messages"] for row in await rows(cluster.client))
            assert counted == MESSAGES + 1


@async_test
async def test_reading_the_record_itself_leaves_no_rows(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 1)
        await read(queue.log(), direct=True)
        own = cluster.client.queue("penstock.usage")
        server, record = cluster.node.readers, record_of(cluster)
        assert server is not None
        for reader in list(server.sessions):
            reader.end()
        await all_reported(cluster)
        written = record.totals().recorded
        assert await rows(cluster.client, direct=True)
        assert own.log().direct_bytes > 0
        for reader in list(server.sessions):
            reader.end()
        assert record.totals().recorded == written


@async_test
async def test_who_reads_is_said_by_the_front_end_and_not_by_the_client(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 1)
        link: Any = queue.log()._route.link
        mask = encode_holder(Holder("1", "somebody else", "another queue"))
        place: LogAddress = await link.ask(LocateLog((await queue.describe()).queue_id, 0, mask), LogAddress)
        server = cluster.node.readers
        assert server is not None
        holder = server.sessions.seal.check(place.ticket, server.now_ms()).holder
        assert holder is not None
        assert (holder.account, holder.queue) == (ACCOUNT, CLICKS)
        assert holder.user != "somebody else"


@async_test
async def test_rows_that_the_log_did_not_take_are_handed_on_by_the_next_process(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
    async with readable_cluster(first) as cluster:
        place = await cluster.place(await a_log(cluster, 1))
        early, server = record_of(cluster), cluster.node.readers
        assert server is not None
        assert early._sender is not None
        await early._sender.close()  # from here on nothing is handed on, as where the process is killed
        early._sender = None
        holder = encode_holder(Holder(ACCOUNT, "early", CLICKS))
        one = await visitor(cluster)
        one.show(server.sessions.seal.issue(place.partition_id, server.now_ms(), holder))
        assert len(await one.answers()) == 1
        one.ask(ReadLog(place.partition_id, 1, 10))
        (answer,) = await one.answers()
        assert isinstance(answer, LogSlice)
        await one.leave()
        await until(lambda: early.totals().recorded == 1)
    shutil.copytree(first / "node-1" / "usage", second / "node-1" / "usage")
    async with readable_cluster(second) as cluster:
        late = record_of(cluster)
        await until(lambda: not late._collector._left)
        assert [(row["user"], row["messages"]) for row in await rows(cluster.client)] == [("early", 10)]
