"""Opening and closing a whole server: what survives, what is refused, and what happens when the node fails."""

from __future__ import annotations

import functools
import json
import socket
import time
from pathlib import Path
from threading import Event, current_thread

import pytest

import penstock
from penstock.backend.node.node import Node
from penstock.config import Address, ServeConfig
from penstock.model.batch import encode_parts
from penstock.model.limits import DAY_MS
from penstock.model.settings import QueueSettings
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.embedded import running_server
from penstock.runtime.engine.driver import LoneFlush
from penstock.runtime.engine.worker import Worker
from penstock.runtime.processes import broker as broker_module
from penstock.runtime.processes.broker import open_broker
from penstock.runtime.processes.listening import StartError
from penstock.storage.errors import JournalFailedError
from penstock.storage.flush import Flush
from penstock.storage.options import StorageOptions
from penstock.wire.credentials import LINK_KEY
from penstock.wire.frames import Frame
from penstock.wire.messages import (
    Count,
    Delivery,
    DescribeQueue,
    Done,
    Ping,
    Purge,
    QueueDescription,
    Receive,
    Send,
    SendResult,
)
from tests.runtime.harness import TEST_SECONDS, RawClient, async_test, small_config, until


@async_test
async def test_messages_outlive_the_server(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        assert server.broker.report.queues == 0
        client = await RawClient.connect(server.port, access_key=LINK_KEY)
        queue_id = await client.create_queue("orders")
        for number in range(100):
            assert isinstance(await client.send(queue_id, [b"%d" % number]), SendResult)
    async with running_server(tmp_path, small_config()) as server:
        report = server.broker.report
        assert (report.queues, report.messages, report.torn, report.damages) == (1, 100, None, [])
        client = await RawClient.connect(server.port, access_key=LINK_KEY)
        assert await client.ask(Purge(queue_id)) == Count(100)


@async_test
async def test_what_was_sent_before_the_stop_is_answered(tmp_path: Path) -> None:
    broker = await open_broker(small_config(data_directory=str(tmp_path)))
    client = await RawClient.connect(broker.address.port)
    queue_id = await client.create_queue("orders")
    waiting = await RawClient.connect(broker.address.port)
    waiting.write(Receive(queue_id, wait_ms=60_000))
    assert isinstance(await client.send(queue_id, [b"last"]), SendResult)
    assert isinstance(await waiting.answer(), Delivery)
    waiting.write(Receive(queue_id, wait_ms=60_000))
    assert await client.ask(Ping()) == Done()
    await broker.close()
    assert broker.failure is None
    assert await client.frame() is None
    assert await waiting.frame() is None
    with pytest.raises(OSError, match=r"."):
        await RawClient.connect(broker.address.port)


@async_test
async def test_what_came_due_while_the_server_was_down_is_done_without_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_server(tmp_path, small_config()) as server:
        client = await RawClient.connect(server.port, access_key=LINK_KEY)
        queue_id = await client.create_queue("orders", QueueSettings(default_ttl_ms=DAY_MS))
        assert isinstance(await client.send(queue_id, [b"stale tomorrow"]), SendResult)
    now_ms = WallClock.now_ms
    monkeypatch.setattr(WallClock, "now_ms", lambda clock: now_ms(clock) + 2 * DAY_MS)
    broker = await open_broker(small_config(data_directory=str(tmp_path)))
    assert broker.report.messages == 1
    store = broker._node._store
    await until(
        lambda: store.committed_position == store.appended_position and store.statistics().flushes_total > 0
    )
    await broker.close()
    async with running_server(tmp_path, small_config()) as server:
        assert server.broker.report.messages == 0


@async_test
async def test_the_second_server_on_a_directory_is_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        with pytest.raises(
            StartError, match=r"in use by another process .*choose another directory with --data"
        ):
            await open_broker(small_config(data_directory=str(tmp_path)))
        client = await RawClient.connect(server.port)
        assert await client.ask(Ping()) == Done()
    async with running_server(tmp_path, small_config()):
        pass  # given up, it can be taken again


@async_test
async def test_a_port_in_use_is_found_before_the_directory_is_touched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = Address("127.0.0.1", other.getsockname()[1])
        with pytest.raises(StartError, match=r"another program does\. Stop it .*--listen"):
            await open_broker(small_config(data_directory=str(tmp_path / "data"), listen=address))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_only_loopback_is_listened_on_while_there_are_no_users(host: str, tmp_path: Path) -> None:
    @async_test
    async def scenario() -> None:
        with pytest.raises(StartError, match="there are no users yet"):
            await open_broker(small_config(data_directory=str(tmp_path), listen=Address(host, 0)))

    scenario()


@async_test
async def test_localhost_is_loopback(tmp_path: Path) -> None:
    config = small_config(listen=Address("localhost", 0))
    async with running_server(tmp_path, config) as server:
        assert server.url == f"penstock://localhost:{server.port}"
        assert await (await RawClient.connect(server.port)).ask(Ping()) == Done()


@async_test
async def test_a_directory_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    for place in (file, file / "below"):
        with pytest.raises(StartError, match=r"cannot use the data directory .*--data"):
            await open_broker(small_config(data_directory=str(place)))


@async_test
async def test_another_storage_version_is_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()):
        pass
    identity = tmp_path / "node.json"
    fields = json.loads(identity.read_text())
    identity.write_text(json.dumps({**fields, "format": 99}))
    with pytest.raises(StartError, match=r"format 99, this version of Penstock reads format"):
        await open_broker(small_config(data_directory=str(tmp_path)))
    identity.write_text(json.dumps(fields))
    async with running_server(tmp_path, small_config()):
        pass  # the refusal changed nothing and gave the directory up


@async_test
async def test_a_disk_that_fails_stops_the_server_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_sync(flush: Flush) -> None:
        flush.error = OSError("the cable is out")

    broker = await open_broker(small_config(data_directory=str(tmp_path)))
    client = await RawClient.connect(broker.address.port)
    queue_id = await client.create_queue("orders")
    monkeypatch.setattr(Flush, "run", no_sync)
    client.write(Purge(queue_id))
    client.write(Ping())
    queued = await RawClient.connect(broker.address.port, hello=False)
    await broker.ended()
    assert isinstance(broker.failure, JournalFailedError)
    critical = [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
    assert len(critical) == 1
    assert critical[0].startswith("the server stops, because its state can no longer be trusted")
    assert "the cable is out" in critical[0]
    assert all(record.exc_info is None for record in caplog.records)
    for one in (client, queued):
        assert await one.is_dropped()
    await broker.close()


@async_test
async def test_a_defect_stops_the_server_rather_than_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await open_broker(small_config(data_directory=str(tmp_path)))
    client = await RawClient.connect(broker.address.port)
    await client.create_queue("orders")

    def defect(*_: object) -> None:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr(Node, "handle", defect)
    client.write(Ping())
    await broker.ended()
    assert isinstance(broker.failure, ZeroDivisionError)
    assert "ZeroDivisionError: nobody thought of this" in caplog.text
    await broker.close()
    monkeypatch.undo()
    async with running_server(tmp_path, small_config()) as server:
        described = await (await RawClient.connect(server.port)).ask(DescribeQueue("orders"))
        assert isinstance(described, QueueDescription)


@async_test
async def test_an_embedded_server_raises_what_stopped_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise ZeroDivisionError("nobody thought of this")

    async def use_it() -> None:
        async with running_server(tmp_path, small_config()) as server:
            client = await RawClient.connect(server.port)
            monkeypatch.setattr(Node, "handle", defect)
            client.write(Ping())
            await server.broker.ended()

    with pytest.raises(ZeroDivisionError, match="nobody"):
        await use_it()


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("durability", ["sync", "os"])
def test_flushes_work_the_same_in_either_thread(
    inline: bool, durability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoneFlush, "runs_inline", lambda _: inline)
    put: list[Flush] = []
    original = Worker.put

    def counted(worker: Worker[Flush], work: Flush) -> None:
        if isinstance(work, Flush):
            put.append(work)
        original(worker, work)

    monkeypatch.setattr(Worker, "put", counted)

    @async_test
    async def scenario() -> None:
        async with running_server(tmp_path, small_config(durability=durability)) as server:
            client = await RawClient.connect(server.port, access_key=LINK_KEY)
            queue_id = await client.create_queue("orders")
            for _ in range(20):
                assert isinstance(await client.send(queue_id, [b"one"]), SendResult)
            assert await client.ask(Purge(queue_id)) == Count(20)

    scenario()
    assert bool(put) is not inline


@async_test
async def test_no_answer_waits_for_the_sync_of_a_request_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_server(tmp_path, small_config()) as server:
        client = await RawClient.connect(server.port, access_key=LINK_KEY)
        queue_id = await client.create_queue("orders")
        ran_in: list[str] = []
        may_run, handled = Event(), 0
        first_one = iter([False])
        run, handle = Flush.run, Node.handle

        def observed(flush: Flush) -> None:
            ran_in.append(current_thread().name)
            may_run.wait(TEST_SECONDS)
            run(flush)

        def counted(node: Node, connection: int, frame: Frame, now_ms: int) -> None:
            nonlocal handled
            handle(node, connection, frame, now_ms)
            handled += 1

        monkeypatch.setattr(LoneFlush, "runs_inline", lambda _: next(first_one, True))
        monkeypatch.setattr(Flush, "run", observed)
        monkeypatch.setattr(Node, "handle", counted)
        client.write(Send(queue_id), encode_parts([b"first"]))
        await until(lambda: bool(ran_in))
        client.write(Send(queue_id), encode_parts([b"came while the first was written"]))
        await until(lambda: handled == 2)
        may_run.set()
        assert isinstance(await client.answer(), SendResult)
        assert isinstance(await client.answer(), SendResult)
        assert ran_in == ["penstock-flush", "penstock-flush"]
        assert isinstance(await client.send(queue_id, [b"alone"]), SendResult)
        assert ran_in[2:] == [current_thread().name]


def test_the_defaults_of_configuration_and_storage_agree() -> None:
    config, options = ServeConfig(), StorageOptions()
    assert (config.durability, config.journal_file_bytes, config.checkpoint_bytes) == (
        options.durability,
        options.journal_file_bytes,
        options.checkpoint_journal_bytes,
    )
    assert (config.segment_bytes, config.cache_bytes) == (options.segment_bytes, options.cache_bytes)


@async_test
async def test_time_goes_on_where_it_was_when_the_clock_is_set_back_between_two_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_server(tmp_path, small_config()) as server, penstock.connect(server.url) as client:
        await (await client.create_queue("edits", ordering="causal", window=0.05)).send(b"before")
    set_back = functools.partial(WallClock, lambda: time.time_ns() - 3_600 * 10**9)
    monkeypatch.setattr(broker_module, "WallClock", set_back)
    async with running_server(tmp_path, small_config()) as server, penstock.connect(server.url) as client:
        edits = client.queue("edits")
        await edits.send(b"after")
        for body in (b"before", b"after"):
            (message,) = await edits.receive(wait=10)
            assert message.body == body
            await message.delete()
