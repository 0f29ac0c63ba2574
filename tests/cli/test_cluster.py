"""`penstock cluster` and `penstock user` on a layout that is written by hand: no node need run to be looked at."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from penstock.cluster.layout.entries import (
    CapacityEntry,
    DrainEntry,
    LayoutEntry,
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    UncleanEntry,
    capacity_key,
    decode_drain,
    decode_unclean,
    drain_key,
    encode,
    node_key,
    partition_key,
    queue_key,
    unclean_key,
)
from penstock.cluster.local.local_plan import plan_cluster
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import Entry
from penstock.model.settings import QueueSettings
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from tests.cli.conftest import Outcome
from tests.etcd_servers import EtcdServers

SETTINGS = QueueSettings(replicas=3)


def run(*arguments: str, **variables: str) -> Outcome:
    """The program as a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment | variables,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def node(number: int) -> NodeEntry:
    return NodeEntry(
        node=f"node-{number}",
        zone=f"zone-{number}",
        native=f"127.0.0.1:{number}",
        peers=f"127.0.0.1:{number}",
        started_ms=1,
        load=number / 10,
    )


PARTITION = PartitionEntry(
    partition=2,
    queue_id=1,
    queue="orders",
    ordinal=0,
    settings=SETTINGS,
    epoch=3,
    primary="node-1",
    primary_started_ms=1,
    replicas=["node-1", "node-2", "node-3"],
    in_sync=["node-1", "node-2"],
    serving=3,
)
LAYOUT: dict[str, LayoutEntry] = {
    **{node_key(f"node-{number}"): node(number) for number in (1, 2, 3)},
    queue_key("orders"): QueueEntry(
        name="orders", queue_id=1, settings=SETTINGS, created_ms=1, partitions=[2]
    ),
    partition_key(2): PARTITION,
}


async def write(url: str, entries: dict[str, LayoutEntry]) -> None:
    store = await open_etcd_store(url)
    for key, entry in entries.items():
        await store.put(key, encode(entry))
    await store.put("elections/manager", b"node-2")
    await store.close()


async def read(url: str, key: str) -> Entry | None:
    store = await open_etcd_store(url)
    found = await store.get(key)
    await store.close()
    return found


def test_status_of_a_cluster_elsewhere(etcd: EtcdServers, tmp_path: Path) -> None:
    url = etcd.url()
    asyncio.run(write(url, LAYOUT))
    shown = run("cluster", "status", "--etcd", url)
    assert shown.code == 0, shown.errors
    assert "node-1* (zone-1), node-2 (zone-2), node-3! (zone-3)" in shown.output
    assert "manager     node-2" in shown.output
    (tmp_path / "secret").write_text("3 espressi and a glass of water\n")
    unanswered = run("cluster", "status", "--etcd", url, "--secret-file", str(tmp_path / "secret"))
    assert (unanswered.code, unanswered.errors) == (0, "")
    told = json.loads(run("cluster", "status", "--etcd", url, "--json").output)
    assert told["manager"] == "node-2"
    assert [(row["node"], row["primaries"], row["replicas"]) for row in told["nodes"]] == [
        ("node-1", 1, 1),
        ("node-2", 0, 1),
        ("node-3", 0, 1),
    ]
    (row,) = told["partitions"]
    assert (row["epoch"], row["in_sync"], row["serving"]) == (3, ["node-1", "node-2"], True)
    assert told["capacity"] == []


def test_status_shows_what_the_pipeline_found_out(etcd: EtcdServers) -> None:
    url = etcd.url()
    entry = CapacityEntry(
        queue="orders",
        measured_ms=0,
        messages=900,
        bytes=9_000,
        messages_per_hour=5.0,
        bytes_per_hour=-50.0,
        limit="max-messages",
        fill=0.9,
        full_at_ms=0,
        partitions=1,
        recommended_partitions=4,
    )
    asyncio.run(write(url, {**LAYOUT, capacity_key("orders"): entry}))
    (row,) = json.loads(run("cluster", "status", "--etcd", url, "--json").output)["capacity"]
    assert (row["queue"], row["messages"], row["fill"]) == ("orders", 900, 0.9)
    assert (row["messages_per_hour"], row["growth_known"]) == (5.0, True)
    assert row["warning"].startswith("the queue orders is at 90% of its max-messages, and has 1 partitions")
    shown = run("cluster", "status", "--etcd", url)
    assert "max-messages 90%" in shown.output
    assert "+5" in shown.output
    silent = msgspec.structs.replace(entry, messages_per_hour=0.0, bytes_per_hour=0.0, growth_known=False)
    asyncio.run(write(url, {capacity_key("orders"): silent}))
    shown = run("cluster", "status", "--etcd", url)
    assert "max-messages 90%" in shown.output
    assert "+0" not in shown.output, "nobody knows how it grows"


def test_a_drain_is_written_waited_for_and_undone(etcd: EtcdServers) -> None:
    url = etcd.url()
    asyncio.run(write(url, LAYOUT))
    done = run("cluster", "drain", "node-3", "--etcd", url, "--timeout", "0", "--json")
    assert done.code == 0, done.errors
    assert json.loads(done.output) == {"event": "drained", "name": "node-3", "left": 1}
    assert "only 2 other nodes are alive" in done.errors
    entry = asyncio.run(read(url, drain_key("node-3")))
    assert entry is not None
    assert decode_drain(entry.value) == DrainEntry(node="node-3")
    moving = msgspec.structs.replace(PARTITION, replicas=["node-1", "node-2", "node-3", "node-4"])
    asyncio.run(write(url, {node_key("node-4"): node(4), partition_key(2): moving}))
    enough = run("cluster", "drain", "node-3", "--etcd", url, "--timeout", "0", "--json")
    assert (enough.code, "other nodes are alive" in enough.errors) == (0, False)
    assert run("cluster", "drain", "node-3", "--undo", "--etcd", url).code == 0
    assert asyncio.run(read(url, drain_key("node-3"))) is None


def test_an_unclean_election_is_an_operators_word(etcd: EtcdServers) -> None:
    url = etcd.url()
    asyncio.run(write(url, LAYOUT))
    led = run("cluster", "elect", "orders", "--unclean", "--yes", "--etcd", url)
    assert led.code != 0
    assert "has a primary; no election is needed" in led.errors
    lost = msgspec.structs.replace(PARTITION, primary="node-9", in_sync=["node-9"], reason="nobody is well")
    asyncio.run(write(url, {partition_key(2): lost}))
    unsaid = run("cluster", "elect", "orders", "--etcd", url)
    assert unsaid.code != 0
    assert "nobody is well" in unsaid.errors
    assert asyncio.run(read(url, unclean_key(2))) is None
    done = run("cluster", "elect", "orders", "--unclean", "--yes", "--etcd", url)
    assert done.code == 0, done.errors
    entry = asyncio.run(read(url, unclean_key(2)))
    assert entry is not None
    assert decode_unclean(entry.value) == UncleanEntry(partition=2, epoch=3)
    assert run("cluster", "elect", "orders", "--partition", "1", "--etcd", url).code != 0


def test_what_is_not_there_is_said(etcd: EtcdServers, tmp_path: Path) -> None:
    url = etcd.url()
    asyncio.run(write(url, LAYOUT))
    unknown = run("cluster", "drain", "node-9", "--etcd", url)
    assert (unknown.code, "there are node-1, node-2, node-3" in unknown.errors) == (3, True)
    unheard = run("cluster", "status", "--queue", "nope", "--etcd", url)
    assert (unheard.code, "there is no queue nope" in unheard.errors) == (3, True)
    nothing = run("cluster", "status", "--data", str(tmp_path / "none"))
    assert (nothing.code, "`penstock cluster up` starts one there" in nothing.errors) == (3, True)
    missing = run("cluster", "up", "--data", str(tmp_path / "new"), PENSTOCK_ETCD="/nowhere/etcd")
    assert (missing.code, "scripts/system-packages" in missing.errors) == (1, True)
    assert run("cluster", "up", "--nodes", "0", "--data", str(tmp_path / "new")).code == 2
    assert run("cluster", "up", "--base-port", "-4", "--data", str(tmp_path / "new")).code == 2
    silent = run("cluster", "up", "--etcd", "etcd://127.0.0.1:1", "--data", str(tmp_path / "new"))
    assert (silent.code, "Start it first" in silent.errors) == (5, True)
    assert not (tmp_path / "new" / "cluster.json").exists()


def test_only_one_starts_a_cluster_in_a_directory(tmp_path: Path) -> None:
    with ClusterDirectory(tmp_path / "new").starting():
        second = run("cluster", "up", "--detach", "--base-port", "0", "--data", str(tmp_path / "new"))
    assert (second.code, "another process is starting a cluster" in second.errors) == (1, True), second.errors
    assert not (tmp_path / "new" / "cluster.json").exists()


def test_users_of_a_cluster_are_in_its_etcd(etcd: EtcdServers, tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path / "cluster")
    directory.make()
    directory.save(ClusterState(plan=plan_cluster(nodes=1, front_ends=1, etcd_url=etcd.url())))
    made = run("user", "create", "admin", "--root", "--data", str(directory.path))
    assert made.code == 0, made.errors
    assert directory.master_key_file.exists()
    file = tmp_path / "frontend.toml"
    state = directory.load()
    assert state is not None
    file.write_text(
        f'[cluster]\nmetadata = "{state.plan.etcd_url}"\nsecret_file = "{directory.secret_file}"\n'
        f'[metadata]\nkey_file = "{directory.master_key_file}"\n'
    )
    listed = run("user", "list", "--json", PENSTOCK_CONFIG=str(file))
    assert json.loads(listed.output)["name"] == "admin"
