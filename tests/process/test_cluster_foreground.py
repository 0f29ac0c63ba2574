"""The foreground of `penstock cluster up`: it tells of deaths, starts again who is supervised, and leaves nobody behind."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.cluster.local.local_plan import plan_cluster, without
from penstock.runtime.local_cluster import running
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from tests.ports import ports_of
from tests.process.local_cluster import ClusterUp
from tests.process.programs import refusal, soon

Start = Callable[..., ClusterUp]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A cluster without nodes: who watches does not care what is watched."""
    directory = ClusterDirectory(tmp_path / "cluster")
    directory.make()
    plan = plan_cluster(nodes=1, front_ends=1, base_port=0, ports=ports_of)
    directory.save(ClusterState(plan=without(plan, "node-1")))
    started: list[ClusterUp] = []

    def up(*options: str) -> ClusterUp:
        started.append(ClusterUp(directory.path, *options))
        return started[-1]

    yield up
    for one in started:
        one.kill()


def state_of(cluster: ClusterUp) -> ClusterState:
    state = ClusterDirectory(cluster.data).load()
    assert state is not None
    return state


def test_a_death_is_told_and_ctrl_c_stops_the_rest(start: Start) -> None:
    cluster = start()
    processes = dict(state_of(cluster).running)
    assert set(processes) == {"etcd", "frontend-1", "balancer"}
    cluster.command("kill", "frontend-1")
    assert "frontend-1 has died" in cluster.event("notice")["notice"]
    assert [row["state"] for row in cluster.status()["processes"]] == ["running", "dead", "running"]
    cluster.interrupt()
    assert not any(running.is_alive(process) for process in processes.values())
    assert state_of(cluster).running == {}


def test_who_is_supervised_is_started_again(start: Start) -> None:
    cluster = start("--supervise")
    first = state_of(cluster).running["frontend-1"]
    running.tell(first, signal.SIGKILL)
    assert "has died" in cluster.event("notice")["notice"]
    assert "frontend-1 runs again" in cluster.event("notice")["notice"]
    assert state_of(cluster).running["frontend-1"] != first
    cluster.interrupt()


def test_another_terminal_stops_it(start: Start) -> None:
    cluster = start()
    assert "runs in" in refusal("cluster", "up", "--data", str(cluster.data))
    assert cluster.command("down") == {"event": "stopped", "forced": []}
    cluster.ended()
    assert "does not run" in refusal("cluster", "status", "--data", str(cluster.data))


def test_a_front_end_comes_and_goes(start: Start) -> None:
    cluster = start()
    assert cluster.command("add", "--frontend")["name"] == "frontend-2"
    assert cluster.command("remove", "frontend-1")["event"] == "removed"
    assert "this is the last" in refusal("cluster", "remove", "frontend-2", "--data", str(cluster.data))
    configuration = (cluster.data / "balancer" / "haproxy.cfg").read_text()
    assert ("frontend-1" in configuration, "frontend-2" in configuration) == (False, True)
    cluster.command("stop", "frontend-2")
    soon(lambda: cluster.status()["processes"][1]["state"] == "stopped")
    cluster.interrupt()
