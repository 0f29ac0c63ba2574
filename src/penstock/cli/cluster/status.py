"""`penstock cluster status`: leaders, in-sync sets and living nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.cluster.target import (
    DEFAULT_DIRECTORY,
    ClusterData,
    EtcdUrl,
    cluster_errors,
    etcd_of,
    running_cluster,
    with_store,
)
from penstock.cli.exits import NOT_FOUND, USAGE, CommandError, reported
from penstock.cli.output import age, console, print_facts, print_json, print_line, print_table, printable
from penstock.cli.parameters import Json, TlsCa, TlsCertificate, TlsKey
from penstock.config.units import format_size

if TYPE_CHECKING:
    from penstock.cluster.layout.entries import CapacityEntry
    from penstock.cluster.layout.status import NodeRow, PartitionRow
    from penstock.cluster.layout.view import ClusterView
    from penstock.metadata.store.interface import MetadataStore
    from penstock.runtime.local_cluster.cluster import LocalCluster

_SHOWN_PARTITIONS = 40
_BAR_CELLS = 10


@reported
def status(
    queue: Annotated[
        str | None,
        typer.Option("--queue", help="Show only the partitions of this queue.", show_default=False),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help=f"Show all partitions, not only {_SHOWN_PARTITIONS}. Partitions with problems come first.",
        ),
    ] = False,
    data: ClusterData = DEFAULT_DIRECTORY,
    etcd: EtcdUrl = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            "--secret-file",
            help="With --etcd: the file with the cluster's secret, to ask the nodes for the lag of the "
            "replicas.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    json: Json = False,
) -> None:
    """Show a cluster: its nodes and load, primaries, epochs, in-sync sets, lag, zones and manager."""
    with cluster_errors():
        from penstock.cluster.layout.capacity import capacity_entries, capacity_facts
        from penstock.cluster.layout.status import node_rows, partition_rows
        from penstock.metadata.store.interface import StoreUnavailableError

        cluster = running_cluster(data) if etcd is None else None
        try:
            view, manager = with_store(etcd_of(data, etcd), _read, _secret(cluster))
        except StoreUnavailableError:
            if cluster is not None and not json:
                _show_processes(_process_rows(cluster))  # which of them died may be the reason
            raise
        nodes = node_rows(view)
        lags = _lags(view, cluster, secret_file, (tls_certificate, tls_key, tls_ca))
        partitions = [row for row in partition_rows(view, lags) if queue is None or row.queue == queue]
        if queue is not None and queue not in view.queues and not partitions:
            raise CommandError(f"there is no queue {queue} in this cluster", NOT_FOUND)
        capacity = [entry for entry in capacity_entries(view) if queue is None or entry.queue == queue]
        processes = _process_rows(cluster) if cluster is not None else []
        if json:
            print_json(
                {
                    "manager": manager,
                    "nodes": [row._asdict() for row in nodes],
                    "partitions": [row._asdict() for row in partitions],
                    "capacity": [capacity_facts(entry) for entry in capacity],
                    "queues": len(view.queues),
                    "processes": processes,
                    "unreadable": view.unreadable,
                }
            )
            return
        _show_summary(cluster, view, manager, partitions)
        if processes:
            _show_processes(processes)
        _show_nodes(nodes)
        _show_partitions(partitions, everything=everything)
        _show_capacity(capacity, everything=everything or queue is not None)
        for key, why in view.unreadable.items():
            console().print(f"cannot be read: {printable(key)}: {printable(why)}", style="red", markup=False)


async def _read(store: MetadataStore) -> tuple[ClusterView, str | None]:
    from penstock.cli.cluster.processes import read_view
    from penstock.metadata.election import PREFIX
    from penstock.runtime.cluster.manager import MANAGER_ELECTION

    holder = await store.get(PREFIX + MANAGER_ELECTION)
    return await read_view(store), holder.value.decode("utf-8", "replace") if holder is not None else None


def _secret(cluster: LocalCluster | None) -> bytes | None:
    """The secret for checking seals; None: the cluster may have processes of a version without seals."""
    from penstock.metadata.remote.settings import MetadataUrlError, read_secret

    if cluster is None or not cluster.state.sealed:
        return None
    try:
        return read_secret(cluster.directory.secret_file)
    except MetadataUrlError:
        return None


def _lags(
    view: ClusterView,
    cluster: LocalCluster | None,
    secret_file: str | None,
    files: tuple[str | None, str | None, str | None],
) -> dict[int, dict[str, int]]:
    """How far replicas are behind, where the nodes may be asked."""
    if cluster is not None:
        secret_file = str(cluster.directory.secret_file)
    if secret_file is None:
        return {}
    import asyncio
    import logging

    from penstock.runtime.cluster.store import cluster_secret
    from penstock.runtime.cluster.tls import ClusterTls
    from penstock.runtime.http.tls import TlsError
    from penstock.runtime.local_cluster.certificates import ThrowAwayAuthority
    from penstock.runtime.monitoring.replica_lag import read_lags
    from penstock.runtime.processes.listening import StartError, StrangerError

    if cluster is not None and cluster.plan.tls is not None:
        certificate, key, authority = map(str, ThrowAwayAuthority(Path(cluster.plan.tls)).files("operator"))
        files = certificate, key, authority
    # The table shows a node that just died; no further message is needed that it cannot be reached.
    logging.getLogger("penstock").addHandler(logging.NullHandler())
    given = [Path(file) for file in files if file is not None]
    if given and len(given) < len(files):
        raise CommandError("--tls-certificate, --tls-key and --tls-ca belong together", USAGE)
    try:
        tls = ClusterTls(given[0], given[1], given[2]) if given else None
        return asyncio.run(read_lags(view.members.living.values(), cluster_secret(secret_file), tls))
    except StrangerError as error:
        raise CommandError(f"{error}. Give the cluster's secret and a certificate of it.", USAGE) from None
    except (StartError, TlsError) as error:
        raise CommandError(str(error)) from None


def _process_rows(cluster: LocalCluster) -> list[dict[str, Any]]:
    state = cluster.state
    return [
        {
            "name": one.name,
            "role": one.role,
            "state": "running"
            if state.is_up(one.name)
            else "dead"
            if one.name in state.running
            else "stopped",
            "process": state.running[one.name].process if one.name in state.running else None,
            "zone": one.zone,
            "ports": one.ports,
        }
        for one in state.plan.processes
    ]


def _show_summary(
    cluster: LocalCluster | None, view: ClusterView, manager: str | None, partitions: list[PartitionRow]
) -> None:
    living = [row for row in partitions if not row.deleted]
    silent = sum(not row.serving for row in living)
    facts = {
        "manager": manager or "none is elected right now",
        "queues": f"{len(view.queues):,}",
        "partitions": f"{len(living):,}, {silent:,} of them do not serve"
        if silent
        else f"{len(living):,}, all serve",
    }
    if len(living) < len(partitions):
        facts["being deleted"] = f"{len(partitions) - len(living):,} partitions, for the reasons below"
    if cluster is not None:
        facts = {"sqs": cluster.plan.sqs_url, "native": cluster.plan.native_url, **facts}
    print_facts("The cluster", facts)


def _show_processes(rows: list[dict[str, Any]]) -> None:
    print_line("")
    print_table(
        ("process", "state", "id", "ports"),
        [
            (
                row["name"],
                row["state"],
                str(row["process"] or "–"),
                ", ".join(f"{name} {port}" for name, port in row["ports"].items()),
            )
            for row in rows
        ],
        right=(2,),
    )


def _show_nodes(rows: list[NodeRow]) -> None:
    print_line("")
    if not rows:
        print_line("No node lives.", style="bold red")
        return
    print_table(
        ("node", "zone", "state", "leads", "holds", "load"),
        [
            (row.node, row.zone or "–", row.state, f"{row.primaries:,}", f"{row.replicas:,}", bar(row.load))
            for row in rows
        ],
        right=(3, 4),
    )


def _show_partitions(rows: list[PartitionRow], *, everything: bool) -> None:
    print_line("")
    if not rows:
        print_line("No partitions yet: `penstock queue create orders` makes one.")
        return
    ordered = sorted(rows, key=lambda row: row.serving and len(row.in_sync) == len(row.replicas))
    shown = ordered if everything else ordered[:_SHOWN_PARTITIONS]
    print_table(
        ("queue", "partition", "primary", "epoch", "replicas (* leads, ! not in sync)", "state"),
        [
            (
                row.queue,
                str(row.ordinal),
                row.primary or "–",
                str(row.epoch),
                replicas_text(row),
                _state(row) + (f": {row.reason}" if row.reason else ""),
            )
            for row in shown
        ],
        right=(1, 3),
    )
    if len(shown) < len(rows):
        print_line(f"and {len(rows) - len(shown):,} more; --all shows them, --queue one queue's")


def _state(row: PartitionRow) -> str:
    if row.deleted:
        return "deleted"
    return "serving" if row.serving else "NOT SERVING"


def _show_capacity(entries: list[CapacityEntry], *, everything: bool) -> None:
    """The pipeline's forecast; by default only for queues that need an operator's attention."""
    from penstock.cluster.layout.capacity import warning

    shown = [entry for entry in entries if everything or warning(entry)]
    if not shown:
        return
    print_line("")
    print_table(
        ("queue", "messages", "an hour", "size", "an hour", "first limit", "measured", "to be known"),
        [
            (
                entry.queue,
                f"{entry.messages:,}",
                f"{entry.messages_per_hour:+,.0f}" if entry.growth_known else "–",
                format_size(entry.bytes),
                _bytes_an_hour(entry),
                f"{entry.limit} {entry.fill:.0%}" if entry.limit else "–",
                age(entry.measured_ms),
                warning(entry) or "–",
            )
            for entry in shown
        ],
        right=(1, 2, 3, 4),
    )


def _bytes_an_hour(entry: CapacityEntry) -> str:
    if not entry.growth_known:
        return "–"
    return f"{'-' if entry.bytes_per_hour < 0 else '+'}{format_size(round(abs(entry.bytes_per_hour)))}"


def replicas_text(row: PartitionRow) -> str:
    """`node-1* (zone-1), node-2 (zone-2), node-3! (zone-3, 12 behind)`."""
    found = []
    for node, zone in zip(row.replicas, row.zones, strict=True):
        mark = "*" if node == row.primary else "" if node in row.in_sync else "!"
        behind = row.lag.get(node, 0)
        notes = [note for note in (zone, f"{behind:,} behind" if behind else "") if note]
        found.append(f"{node}{mark}" + (f" ({', '.join(notes)})" if notes else ""))
    return ", ".join(found)


def bar(load: float) -> str:
    """`███░░░░░░░  30 %`."""
    filled = round(max(0.0, min(1.0, load)) * _BAR_CELLS)
    return f"{'█' * filled}{'░' * (_BAR_CELLS - filled)} {load:4.0%}"
