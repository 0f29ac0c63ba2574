"""`penstock cluster kill|stop|start|add|drain|remove`: one process of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.cluster.target import (
    DEFAULT_DIRECTORY,
    ClusterData,
    EtcdUrl,
    ProcessName,
    cluster_errors,
    etcd_of,
    running_cluster,
    with_store,
)
from penstock.cli.confirmation import confirm_loss
from penstock.cli.exits import NOT_FOUND, REFUSED, USAGE, CommandError, reported
from penstock.cli.output import error_console, print_json, print_line
from penstock.cli.parameters import Json, Yes, duration_seconds
from penstock.cli.progress import progress

if TYPE_CHECKING:
    from penstock.cluster.layout.view import ClusterView
    from penstock.metadata.store.interface import MetadataStore
    from penstock.runtime.local_cluster.cluster import LocalCluster

_LOOK_SECONDS = 0.2

Wait = Annotated[
    str,
    typer.Option(
        "--timeout",
        help="How long to wait until the node holds no partitions; 0: do not wait.",
        metavar="TIME",
    ),
]


def _say(json: bool, event: str, name: str, sentence: str, **more: Any) -> None:
    if json:
        print_json({"event": event, "name": name, **more})
    else:
        print_line(sentence)


@reported
def kill(node: ProcessName, data: ClusterData = DEFAULT_DIRECTORY, json: Json = False) -> None:
    """Kill a process of the local cluster with SIGKILL, as in a power cut."""
    with cluster_errors():
        cluster = running_cluster(data)
        if not cluster.kill(node):
            raise CommandError(f"{node} does not run; `penstock cluster start {node}` starts it")
        _say(json, "killed", node, f"{node} is killed. `penstock cluster start {node}` brings it back.")


@reported
def stop(node: ProcessName, data: ClusterData = DEFAULT_DIRECTORY, json: Json = False) -> None:
    """Stop a process of the local cluster cleanly. A node is not drained first."""
    with cluster_errors():
        cluster = running_cluster(data)
        cluster.planned(node)
        if not cluster.state.is_up(node):
            raise CommandError(f"{node} does not run; `penstock cluster start {node}` starts it")
        forced = cluster.stop(node)
        _say(json, "stopped", node, f"{node} is stopped{' by force' if forced else ''}.", forced=bool(forced))


@reported
def start(node: ProcessName, data: ClusterData = DEFAULT_DIRECTORY, json: Json = False) -> None:
    """Start a process of the local cluster again, with its data."""
    with cluster_errors():
        cluster = running_cluster(data)
        cluster.planned(node)
        if cluster.state.is_up(node):
            raise CommandError(f"{node} runs already")
        began = time.monotonic()
        cluster.start(node)
        seconds = time.monotonic() - began
        _say(json, "ready", node, f"{node} runs again, after {seconds:.1f} s.", seconds=round(seconds, 3))


@reported
def add(
    frontend: Annotated[
        bool,
        typer.Option(
            "--frontend", help="Add a front end instead of a node; the load balancer uses it at once."
        ),
    ] = False,
    zone: Annotated[
        str | None,
        typer.Option(
            "--zone", help="The node's zone. Default: the zone with the fewest nodes.", show_default=False
        ),
    ] = None,
    data: ClusterData = DEFAULT_DIRECTORY,
    json: Json = False,
) -> None:
    """Add a node to the local cluster. The manager moves partitions to it gradually."""
    if frontend and zone is not None:
        raise CommandError("front ends have no zone", USAGE)
    with cluster_errors():
        added = running_cluster(data).add("frontend" if frontend else "node", zone)
        where = f" in {added.zone}" if added.zone else ""
        _say(json, "added", added.name, f"{added.name} runs{where}.", zone=added.zone, ports=added.ports)


@reported
def drain(
    node: ProcessName,
    undo: Annotated[bool, typer.Option("--undo", help="Allow the node to hold partitions again.")] = False,
    timeout: Wait = "10m",
    data: ClusterData = DEFAULT_DIRECTORY,
    etcd: EtcdUrl = None,
    json: Json = False,
) -> None:
    """Move all partitions of a node to other nodes. No message is lost and clients see no errors."""
    with cluster_errors():
        url = etcd_of(data, etcd)
        if undo:
            _known_node(with_store(url, read_view), node)
            with_store(url, lambda store: _undrain(store, node))
            _say(json, "undrained", node, f"{node} may hold partitions again.")
            return
        _drain(url, node, remove=False, seconds=duration_seconds(timeout))
        left = _held(with_store(url, read_view), node)
        done = f"{node} holds nothing any more; it may be stopped."
        _say(
            json,
            "drained",
            node,
            done if not left else f"{node} is draining, {left} partitions to go.",
            left=left,
        )


@reported
def remove(
    node: ProcessName,
    timeout: Wait = "10m",
    data: ClusterData = DEFAULT_DIRECTORY,
    etcd: EtcdUrl = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove a node permanently: drain it, then stop it. A front end is only stopped."""
    with cluster_errors():
        cluster = running_cluster(data) if etcd is None else None
        if cluster is not None and _removed_without_draining(cluster, node):
            _say(json, "removed", node, f"{node} is gone.")
            return
        url = etcd_of(data, etcd)
        if not yes:
            confirm_loss(f"Remove {node}, and delete its data when other nodes have copies?")
        _drain(url, node, remove=True, seconds=duration_seconds(timeout))
        left = _held(with_store(url, read_view), node)
        if left:
            raise CommandError(
                f"{node} still holds {left} partitions; it is removed when the manager has moved them: run this again",
                REFUSED,
            )
        if cluster is not None:
            cluster.forget(node)
        elsewhere = "" if cluster is not None else " Its process can be stopped now, and its data deleted."
        _say(json, "removed", node, f"{node} is removed; other nodes have its partitions.{elsewhere}")


def _removed_without_draining(cluster: LocalCluster, name: str) -> bool:
    """Front ends and metadata servers hold nothing."""
    role = cluster.planned(name).role
    if role in ("etcd", "balancer"):
        raise CommandError(
            f"a cluster needs its {name}; to test a failure of it, use `penstock cluster kill {name}`", USAGE
        )
    if role == "node":
        return False
    if role == "frontend" and len(cluster.plan.of_role("frontend")) == 1:
        raise CommandError("a cluster needs a front end, and this is the last one", USAGE)
    cluster.forget(name)
    return True


def _drain(url: str, node: str, *, remove: bool, seconds: float) -> None:
    view = with_store(url, read_view)
    _known_node(view, node)
    others = [name for name in view.members.living if name != node and name not in view.drains]
    if not others and _held(view, node):
        raise CommandError(f"no other node can take over the partitions of {node}: add a node first", REFUSED)
    # Not of partitions: on a move they have one more for a while.
    most = max((seen.entry.settings.replicas for seen in view.queues.values()), default=0)
    if len(others) < most:
        error_console().print(
            f"a queue has {most} replicas and only {len(others)} other nodes are alive: such queues have fewer replicas meanwhile, but enough to accept sends",
            style="yellow",
            markup=False,
        )
    with_store(url, lambda store: _write_drain(store, node, remove=remove))
    deadline = time.monotonic() + seconds
    whole = _held(view, node)
    with progress(f"draining {node}", whole) as report:
        while (left := _held(with_store(url, read_view), node)) and time.monotonic() < deadline:
            report(max(0, whole - left))
            time.sleep(_LOOK_SECONDS)


async def _write_drain(store: MetadataStore, node: str, *, remove: bool) -> None:
    from penstock.cluster.layout.entries import DrainEntry, drain_key, encode

    await store.put(drain_key(node), encode(DrainEntry(node=node, remove=remove)))


async def _undrain(store: MetadataStore, node: str) -> None:
    from penstock.cluster.layout.entries import drain_key

    await store.delete(drain_key(node))


async def read_view(store: MetadataStore) -> ClusterView:
    """The layout as it is now."""
    from penstock.cluster.layout.view import PREFIX, ClusterView

    view = ClusterView()
    now_ms = time.time_ns() // 1_000_000
    for entry in (await store.list(PREFIX)).entries:
        view.apply(entry.key, entry.value, entry.version, now_ms)
    return view


def _known_node(view: ClusterView, node: str) -> None:
    from penstock.cluster.layout.status import node_rows

    names = [row.node for row in node_rows(view)]
    if node not in names:
        raise CommandError(
            f"there is no node {node} in this cluster; there are {', '.join(names) or 'none at all'}",
            NOT_FOUND,
        )


def _held(view: ClusterView, node: str) -> int:
    """How many partitions a node holds, or has not dropped yet."""
    entries = [seen.entry for seen in view.partitions.values()]
    return sum(node in entry.replicas or node in entry.leaving for entry in entries)


COMMANDS: dict[str, Callable[..., None]] = {
    "kill": kill,
    "stop": stop,
    "start": start,
    "add": add,
    "drain": drain,
    "remove": remove,
}
