"""A disk that is full is said to be full, wherever that was noticed; nothing else is taken for it."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.cluster.local.local_plan import plan_cluster
from penstock.runtime.local_cluster.cluster import LocalCluster, StartFailedError
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from penstock.runtime.local_cluster.full_disk import why_full, why_not_written
from tests.ports import ports_of

STACK = " | ".join(f"go.etcd.io/etcd/etcdmain.frame{number}()" for number in range(40))
FULL = "panic: failed to write wal: write /data/wal/0.tmp: no space left on device"


def started(place: Path, said: str) -> str:
    """What is told of an etcd that says this, with a long stack behind it, and ends."""
    directory = ClusterDirectory(place)
    directory.make()
    directory.save(ClusterState(plan=plan_cluster(nodes=1, front_ends=1, ports=ports_of)))
    script = f"echo '{said}' >&2; echo '{STACK}' | tr '|' '\\n' >&2; exit 1"
    cluster = LocalCluster(directory, before=lambda planned: ("sh", "-c", script, "--"))
    with pytest.raises(StartFailedError) as failed:
        cluster.start("etcd")
    return str(failed.value)


def test_a_program_that_found_the_disk_full_is_quoted_with_one_sentence(tmp_path: Path) -> None:
    said = started(tmp_path / "cluster", FULL)
    assert said.startswith(
        f"etcd has ended while it started: the disk of {tmp_path / 'cluster' / 'etcd'} is full ("
    )
    assert "--data" in said
    assert "etcdmain" not in said


def test_what_was_logged_before_the_start_says_nothing(tmp_path: Path) -> None:
    started(tmp_path / "cluster", FULL)
    said = started(tmp_path / "cluster", "panic: something else")
    assert "is full" not in said
    assert "all of it is in" in said


class EndedAtOnce(subprocess.Popen[bytes]):
    """A child that has ended, and has not been waited for, by the time anybody asks for it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)


def test_a_program_that_ends_before_anybody_looks_is_quoted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.runtime.local_cluster.etcd_process.subprocess.Popen", EndedAtOnce)
    said = started(tmp_path / "cluster", "panic: something else")
    assert said.startswith("etcd has ended while it started: ")
    assert f"all of it is in {tmp_path / 'cluster' / 'etcd' / 'etcd-1' / 'etcd.log'}" in said


def test_only_a_full_disk_is_called_full(tmp_path: Path) -> None:
    assert why_not_written(OSError(errno.EACCES, "no"), tmp_path) is None
    assert "is full" in (why_not_written(OSError(errno.ENOSPC, "no"), tmp_path) or "")
    assert why_full(tmp_path, "all is well") is None
    assert why_full(tmp_path / "not" / "there", FULL) is None
