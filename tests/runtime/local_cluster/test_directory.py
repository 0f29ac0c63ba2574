"""The directory of a local cluster: a state that every command finds, a secret that nobody else reads."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from penstock.cluster.local.local_plan import plan_cluster
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState, DirectoryError
from penstock.runtime.local_cluster.running import Running, identified

PLAN = plan_cluster(nodes=2, front_ends=1)


def made(path: Path) -> ClusterDirectory:
    directory = ClusterDirectory(path)
    directory.make()
    directory.save(ClusterState(plan=PLAN))
    return directory


def test_where_no_cluster_ever_was_there_is_no_state(tmp_path: Path) -> None:
    assert ClusterDirectory(tmp_path / "none").load() is None


def test_the_secret_stays_and_is_for_the_owner_alone(tmp_path: Path) -> None:
    directory = made(tmp_path / "cluster")
    secret = directory.secret_file.read_text()
    directory.make()
    assert directory.secret_file.read_text() == secret
    assert len(bytes.fromhex(secret.strip())) == 32
    assert directory.secret_file.stat().st_mode & 0o077 == 0
    assert directory.path.stat().st_mode & 0o077 == 0


def test_in_a_directory_that_others_may_read_they_can_lock_nothing(tmp_path: Path) -> None:
    """Who may read a file may hold its lock, and every command would wait for it."""
    (tmp_path / ".lock").touch(mode=0o644)
    directory = made(tmp_path)
    with directory.starting():
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {".lock", ".starting", "secret", "cluster.json"} <= {file.name for file in files}
    for file in files:
        assert file.stat().st_mode & 0o077 == 0, file


def test_who_runs_is_known_to_the_next_command(tmp_path: Path) -> None:
    directory = made(tmp_path)
    directory.note_started("node-1", identified(os.getpid()))
    directory.note_started("node-2", Running(os.getpid(), 1))
    state = ClusterDirectory(tmp_path).load()
    assert state is not None
    assert state.plan == PLAN
    assert (state.up, state.is_watched) == (["node-1"], False)
    directory.note_stopped("node-1", "node-2", "node-3")
    assert ClusterDirectory(tmp_path).load() == ClusterState(plan=PLAN)


def test_commands_at_the_same_time_lose_nothing_of_each_other(tmp_path: Path) -> None:
    directory = made(tmp_path)
    threads = [
        Thread(target=ClusterDirectory(tmp_path).note_started, args=(f"node-{number}", Running(number, 1)))
        for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = directory.load()
    assert state is not None
    assert len(state.running) == 20


def test_what_is_no_state_is_said(tmp_path: Path) -> None:
    directory = made(tmp_path)
    directory.state_file.write_bytes(msgspec.json.encode({"plan": 7}))
    with pytest.raises(DirectoryError, match="not the state of a cluster"):
        directory.load()
