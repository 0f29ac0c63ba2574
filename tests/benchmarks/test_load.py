"""Load tasks against a real server: they do what they say, and count what they did."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import penstock
from benchmarks import tasks
from benchmarks.load import perform
from benchmarks.options import BenchOptions
from benchmarks.processes import BenchError, LoadProcess
from benchmarks.stage import Stage
from penstock.runtime.embedded import running_server

Scenario = Callable[[str, penstock.Queue], Awaitable[None]]


def with_server(directory: Path, scenario: Scenario, **options: object) -> None:
    async def run() -> None:
        async with running_server(directory) as server, penstock.connect(server.url) as client:
            queue = await client.create_queue("load", **options)  # type: ignore[arg-type]  # as the caller names them
            await scenario(server.url, queue)

    asyncio.run(run())


def publishing(url: str, messages: int, groups: int = 0) -> tasks.Publish:
    return tasks.Publish(
        url=url, queue="load", messages=messages, size_bytes=50, batch_messages=10, in_flight=4, groups=groups
    )


def test_publish_and_receive_count_every_message(tmp_path: Path) -> None:
    async def scenario(url: str, queue: penstock.Queue) -> None:
        sent = await perform(publishing(url, 200))
        assert sent.messages == 200
        assert (await queue.describe()).statistics.ready == 200
        received = await perform(
            tasks.Receive(url=url, queue="load", messages=200, batch_messages=10, credit=100)
        )
        assert received.messages == 200
        assert received.ended_ns > received.started_ns
        statistics = (await queue.describe()).statistics
        assert (statistics.ready, statistics.leased, statistics.deleted_total) == (0, 0, 200)

    with_server(tmp_path, scenario)


def test_a_group_is_received_by_weight(tmp_path: Path) -> None:
    async def scenario(url: str, queue: penstock.Queue) -> None:
        async with penstock.connect(url) as client:
            low = await client.create_queue("low")
            await low.send_batch([b"x"] * 100)
        await perform(publishing(url, 200))
        task = tasks.ReceiveGroup(
            url=url, weights={"load": 4, "low": 1}, messages=100, batch_messages=5, in_flight=1
        )
        outcome = await perform(task)
        assert (outcome.messages, outcome.served) == (100, {"load": 80, "low": 20})
        assert outcome.longest_gap <= 8
        assert (await queue.describe()).statistics.deleted_total == 80

    with_server(tmp_path, scenario)


def test_publish_spreads_over_groups(tmp_path: Path) -> None:
    async def scenario(url: str, queue: penstock.Queue) -> None:
        await perform(publishing(url, 40, groups=20))
        groups = [message.group async for message in queue.peek()]
        assert len(groups) == 40
        assert len(set(groups)) == 20

    with_server(tmp_path, scenario, ordering="fifo")


def test_single_sends_are_timed_one_by_one(tmp_path: Path) -> None:
    async def scenario(url: str, queue: penstock.Queue) -> None:
        outcome = await perform(tasks.SendSingly(url=url, queue="load", messages=5, size_bytes=20))
        assert outcome.latency is not None
        assert outcome.latency.samples == 5
        assert 0 < outcome.latency.p50_us <= outcome.latency.worst_us

    with_server(tmp_path, scenario)


def test_paced_messages_carry_their_time(tmp_path: Path) -> None:
    async def scenario(url: str, queue: penstock.Queue) -> None:
        paced = tasks.SendPaced(url=url, queue="load", messages=20, size_bytes=64, rate=2_000)
        watching = asyncio.create_task(perform(tasks.Watch(url=url, queue="load", messages=20)))
        await perform(paced)
        outcome = await watching
        assert outcome.latency is not None
        assert outcome.latency.samples == 20
        assert outcome.latency.p50_us > 0

    with_server(tmp_path, scenario)


def test_rounds_leave_the_backlog_as_it_was(tmp_path: Path) -> None:
    async def scenario(url: str, queue: penstock.Queue) -> None:
        await perform(publishing(url, 100))
        outcome = await perform(
            tasks.ReceiveRounds(
                url=url, queue="load", rounds=3, messages=30, size_bytes=50, batch_messages=10
            )
        )
        assert outcome.messages == 90
        assert 0 < outcome.timed_seconds < outcome.seconds
        assert (await queue.describe()).statistics.ready == 100

    with_server(tmp_path, scenario)


def test_a_load_process_reports_trouble() -> None:
    with LoadProcess() as load, pytest.raises(BenchError, match="ftp"):
        load.run(tasks.SendSingly(url="ftp://nowhere", queue="load", messages=1, size_bytes=1), 60.0)


def test_a_stage_starts_a_server_of_its_own_and_clears_it_away(tmp_path: Path) -> None:
    stage = Stage(BenchOptions(data_directory=tmp_path), tmp_path, [], lambda sentence: None)
    with stage.server() as server:
        server.client.create_queue("queue")
        assert server.statistics("queue").ready == 0
        assert server.resident_bytes() > 1_000_000
        assert server.cpu_seconds() > 0
    assert list(tmp_path.iterdir()) == []
