"""`penstock serve` as a process: ready lines, signals, exit codes, and what survives a kill."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from penstock.runtime.processes.process import fitting_connections
from penstock.wire.messages import Count, Peek, Purge, SendResult
from tests.runtime.harness import RawClient, async_test

PROCESS_SECONDS = 300
ANY_PORTS = ("--listen", "127.0.0.1:0", "--sqs-listen", "127.0.0.1:0", "--monitoring-listen", "127.0.0.1:0")


@contextmanager
def serve(
    directory: Path, *options: str, files: int | None = None
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A server process on a free port, and what it said when it was ready; it may open so many files."""
    command = [sys.executable, "-m", "penstock.cli.main", "serve", "--json", *ANY_PORTS]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    process = subprocess.Popen(
        [*command, "--data", str(directory), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files)) if files else None,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield process, json.loads(line)
    finally:
        process.kill()
        process.communicate(timeout=PROCESS_SECONDS)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and what was logged."""
    _, errors = process.communicate(timeout=PROCESS_SECONDS)
    return process.returncode, errors


def send_some(port: int, bodies: list[bytes]) -> int:
    """Sends one message after the other to a new queue; returns its id."""
    queue_ids: list[int] = []

    @async_test
    async def scenario() -> None:
        client = await RawClient.connect(port)
        queue_ids.append(await client.create_queue("orders"))
        for body in bodies:
            assert isinstance(await client.send(queue_ids[0], [body]), SendResult)

    scenario()
    return queue_ids[0]


def test_the_ready_line_says_where_everything_is(tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    with serve(tmp_path / "data", "--ready-file", str(ready_file)) as (process, ready):
        assert ready["event"] == "ready"
        assert ready["url"] == f"penstock://127.0.0.1:{ready['port']}"
        assert ready["data_directory"] == str(tmp_path / "data")
        assert ready["process"] == process.pid
        assert ready["durability"] == "sync"
        assert ready["recovery"] == {
            "queues": 0,
            "messages": 0,
            "records_replayed": 0,
            "torn_tail": None,
            "damages": [],
        }
        send_some(ready["port"], [b"one"])
        process.send_signal(signal.SIGTERM)
        code, log = ended(process)
        assert code == 0, log
        assert "SIGTERM: stopping" in log
        assert "every acknowledged message is on disk" in log
    assert json.loads(ready_file.read_text()) == ready


def test_an_interrupt_is_a_clean_stop_too(tmp_path: Path) -> None:
    with serve(tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == 0


def test_a_killed_server_comes_back_with_everything_it_acknowledged(tmp_path: Path) -> None:
    with serve(tmp_path) as (process, ready):
        queue_id = send_some(ready["port"], [b"%d" % number for number in range(50)])
        process.kill()
        assert ended(process)[0] == -signal.SIGKILL
    with serve(tmp_path) as (_, ready):
        # On a slow machine the record of those requests may have reached its log before the kill, and counts too.
        assert ready["recovery"]["messages"] >= 50

        @async_test
        async def scenario() -> None:
            client = await RawClient.connect(ready["port"])
            assert await client.ask(Purge(queue_id)) == Count(50)

        scenario()


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    """A client that leaves its last answers unread holds up a clean stop; nobody has to wait for that."""
    with serve(tmp_path) as (process, ready):
        queue_id = send_some(ready["port"], [b"x" * 1_000_000])

        @async_test
        async def scenario() -> None:
            client = await RawClient.connect(ready["port"])
            for _ in range(30):
                client.write(Peek(queue_id))
            assert await client.answer() is not None  # the others are on their way and nobody reads them
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            loop = asyncio.get_running_loop()
            assert "stopping" in await loop.run_in_executor(None, process.stderr.readline)
            process.send_signal(signal.SIGTERM)
            code, log = await loop.run_in_executor(None, ended, process)
            assert code == 1
            assert "SIGTERM again: stopping at once" in log

        scenario()


def test_a_server_that_cannot_start_says_why_in_one_sentence(tmp_path: Path) -> None:
    with serve(tmp_path) as (_, ready):
        for options, sentence, code in (
            (["--data", str(tmp_path)], "is in use by another process", 1),
            (["--listen", f"127.0.0.1:{ready['port']}"], "another program does", 1),
            (["--listen", "0.0.0.0:0"], "there are no users yet", 1),
            (["--durability", "maybe"], '"maybe" is not allowed', 2),
            (
                ["--data", str(tmp_path / "other"), "--monitoring-listen", "0.0.0.0:0"],
                "monitoring.token_file",
                2,
            ),
        ):
            result = subprocess.run(
                [sys.executable, "-m", "penstock.cli.main", "serve", *ANY_PORTS, *options],
                capture_output=True,
                text=True,
                timeout=PROCESS_SECONDS,
                cwd=tmp_path,
                check=False,
            )
            assert result.returncode == code, result
            assert sentence in result.stderr
            assert result.stderr.startswith("error: ")
            assert len(result.stderr.splitlines()) == 1


def test_the_server_keeps_to_the_processors_it_is_told(tmp_path: Path) -> None:
    one = min(os.sched_getaffinity(0))
    with serve(tmp_path / "data", "--cpus", str(one)) as (process, _):
        threads = [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]
        assert len(threads) > 1
        assert all(os.sched_getaffinity(thread) == {one} for thread in threads)


def test_processors_that_are_not_there_are_refused_in_one_sentence(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "penstock.cli.main",
        "serve",
        *ANY_PORTS,
        "--data",
        str(tmp_path / "data"),
    ]
    refused = subprocess.run(
        [*command, "--cpus", "4095"], capture_output=True, text=True, timeout=PROCESS_SECONDS
    )
    assert refused.returncode == 1
    assert "cannot use only processors 4095: this process may use" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_connections_that_say_nothing_stop_no_server_that_may_open_few_files(tmp_path: Path) -> None:
    settings = tmp_path / "penstock.toml"
    settings.write_text('[storage]\njournal_file_size = "32MiB"\ncheckpoint_size = "32MiB"\n')
    options = ("--config", str(settings))
    with serve(tmp_path / "data", *options, files=400) as (process, facts), ExitStack() as stack:
        sqs = urlsplit(str(facts["sqs_url"]))
        for place in ((sqs.hostname, sqs.port), ("127.0.0.1", facts["port"])):
            for _ in range(400):
                stack.enter_context(socket.create_connection(place, timeout=PROCESS_SECONDS))
        send_some(facts["port"], [b"x" * (1 << 20)] * 100)  # the journal needs new files for it
        with urllib.request.urlopen(f"{facts['sqs_url']}/health", timeout=PROCESS_SECONDS) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        code, errors = ended(process)
    assert code == 0, errors
    assert "instead of 16000; raise its limit (ulimit -n)" in errors


@pytest.mark.parametrize(
    ("files", "connections", "fitting"),
    [
        (28_048, (10_000, 16_000), (10_000, 16_000)),
        (20_000, (10_000, 16_000), (6_904, 11_047)),
        (1_024, (10_000, 16_000), (196, 315)),
        (1_024, (10_000, 0), (512, 0)),
        (8, (1, 100_000), (1, 3)),
    ],
)
def test_ports_share_the_files_that_the_server_itself_does_not_need(
    files: int, connections: tuple[int, ...], fitting: tuple[int, ...]
) -> None:
    assert fitting_connections(files, connections) == fitting
