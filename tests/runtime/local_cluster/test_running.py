"""Processes known by their id and their beginning: never mistaken for others, ended for sure."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from penstock.runtime.local_cluster import running
from penstock.runtime.local_cluster.running import Running

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
]
LONG = 30.0


def sleeper(directory: Path, command: list[str] = SLEEPER) -> Running:
    return running.start(command, directory / "log", directory=directory)


def test_it_runs_until_it_is_killed(tmp_path: Path) -> None:
    one = sleeper(tmp_path)
    assert running.is_alive(one)
    assert running.kill(one)
    assert not running.is_alive(one)
    assert not running.kill(one)


def test_another_process_with_the_same_id_is_not_it(tmp_path: Path) -> None:
    one = sleeper(tmp_path)
    stranger = Running(one.process, one.began - 1)
    assert not running.is_alive(stranger)
    assert not running.tell(stranger, signal.SIGKILL)
    assert running.is_alive(one)
    running.kill(one)


def test_it_is_stopped_also_while_it_is_paused(tmp_path: Path) -> None:
    one = sleeper(tmp_path)
    running.tell(one, signal.SIGSTOP)
    assert running.stop(one, LONG)
    assert not running.is_alive(one)


def test_who_does_not_listen_is_ended_by_force(tmp_path: Path) -> None:
    one = sleeper(tmp_path, DEAF)
    while "deaf" not in (tmp_path / "log").read_text():
        assert running.is_alive(one)
    assert not running.stop(one, 0.05)
    assert not running.is_alive(one)


def test_this_process_is_alive_and_has_used_the_processor() -> None:
    own = running.identified(os.getpid())
    assert running.is_alive(own)
    assert running.cpu_seconds(own) > 0
    assert running.cpu_seconds(Running(own.process, own.began - 1)) == 0
