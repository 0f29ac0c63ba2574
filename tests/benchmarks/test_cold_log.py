"""What `penstock bench --log` is made of: files out of memory, a reader that counts, a server started anew."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import penstock
from benchmarks import command, tasks
from benchmarks.cold_files import cached_share, drop_from_cache, read_rate
from benchmarks.load import perform
from benchmarks.options import LOG_SECTIONS, BenchOptions
from benchmarks.processes import LoadProcess
from benchmarks.stage import Stage
from penstock.runtime.embedded import running_server

SIZE_BYTES = 4 * 1024 * 1024
FAR_FUTURE = 2.0**40


def test_files_are_dropped_from_memory(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    file = tmp_path / "below" / "file"
    file.write_bytes(os.urandom(SIZE_BYTES))
    assert cached_share(tmp_path, FAR_FUTURE) == 1.0
    assert cached_share(tmp_path, file.stat().st_mtime) == 0.0, "what was written later does not count"
    drop_from_cache(tmp_path)
    if cached_share(tmp_path, FAR_FUTURE) == 1.0:
        pytest.skip("this file system keeps files in memory")
    drop_from_cache(tmp_path)
    assert cached_share(tmp_path, FAR_FUTURE) < 0.5
    assert read_rate(tmp_path, SIZE_BYTES) > 0
    assert cached_share(tmp_path, FAR_FUTURE) == 1.0


@pytest.mark.parametrize("bodies", [False, True])
def test_a_reader_counts_what_it_reads(tmp_path: Path, bodies: bool) -> None:
    async def run() -> None:
        async with running_server(tmp_path) as server, penstock.connect(server.url) as client:
            queue = await client.create_queue("log", consumption="log")
            for _ in range(3):
                await queue.send_batch([b"x" * 100] * 100)
            task = tasks.ReadLog(url=server.url, queue="log", messages=250, bodies=bodies)
            assert (await perform(task)).messages == 250

    asyncio.run(run())


def test_the_section_is_asked_for(tmp_path: Path) -> None:
    assert BenchOptions(log=True, data_directory=tmp_path).sections == LOG_SECTIONS
    with pytest.raises(ValueError, match="runs of their own"):
        BenchOptions(log=True, sqs=True, data_directory=tmp_path).check()
    assert command.run(only=[], log=True, sqs=True, data=str(tmp_path)) == 2


def test_a_server_finds_what_the_one_before_left(tmp_path: Path) -> None:
    options = BenchOptions(quick=True, data_directory=tmp_path)
    with LoadProcess() as load:
        stage = Stage(options, tmp_path, [load], lambda _: None)
        home = tmp_path / "kept"
        with stage.server(home=home) as server:
            server.client.create_queue("log", consumption="log").send(b"x")
        with stage.server(home=home) as server:
            assert server.client.queue("log").log().read(1).bodies() == [b"x"]
    assert home.exists()
