"""`penstock node run`: a node of a cluster, which holds partitions of queues by the cluster's layout."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.exits import reported
from penstock.cli.output import console, print_facts
from penstock.cli.parameters import (
    ConfigFile,
    Cpus,
    Json,
    LogFormat,
    LogLevel,
    ReadyFile,
    TlsCa,
    TlsCertificate,
    TlsKey,
)
from penstock.cli.role import configured, run_role

if TYPE_CHECKING:
    from penstock.config import NodeConfig
    from penstock.runtime.cluster_node import ClusterNode


@reported
def run(
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="What this node is called in the cluster; its data belongs to the name, so keep it.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            "--zone", help="Where it stands: rack, room, provider's zone.", metavar="ZONE", show_default=False
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="The cluster's metadata, such as etcd://127.0.0.1:2379.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            "--secret-file",
            help="The file with the secret that all processes of the cluster know.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", help="The directory for all data (penstock-data).", metavar="DIR", show_default=False
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            help="Where front ends connect (127.0.0.1:9326).",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    peers_listen: Annotated[
        str | None,
        typer.Option(
            "--peers-listen",
            help="Where other nodes connect (127.0.0.1:9328).",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            "--advertise",
            help="How front ends reach it, if not where it listens.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    peers_advertise: Annotated[
        str | None,
        typer.Option(
            "--peers-advertise",
            help="How other nodes reach it, if not where it listens.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    reader_listen: Annotated[
        str | None,
        typer.Option(
            "--reader-listen",
            help="Where clients with a ticket read logs without a front end (off).",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    reader_advertise: Annotated[
        str | None,
        typer.Option(
            "--reader-advertise",
            help="How they reach it, if not where it listens.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    monitoring_listen: Annotated[
        str | None,
        typer.Option(
            "--monitoring-listen",
            help="Where monitoring looks (127.0.0.1:9325); off: nowhere.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    durability: Annotated[
        str | None,
        typer.Option(
            "--durability", help="sync (default): on disk before it is acknowledged; os: faster, weaker."
        ),
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    config: ConfigFile = None,
    cpus: Cpus = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    ready_file: ReadyFile = None,
    json: Json = False,
) -> None:
    """Run a node of a cluster: it holds the partitions that the cluster's layout gives it."""
    started = time.perf_counter()
    from penstock.config import load_node_config

    flags = {
        "cluster_name": name,
        "cluster_zone": zone,
        "cluster_metadata": cluster,
        "cluster_secret_file": secret_file,
        "cluster_tls_certificate": tls_certificate,
        "cluster_tls_key": tls_key,
        "cluster_tls_ca": tls_ca,
        "data_directory": data,
        "listen": listen,
        "cluster_peers_listen": peers_listen,
        "cluster_advertise": advertise,
        "cluster_peers_advertise": peers_advertise,
        "reader_listen": reader_listen,
        "reader_advertise": reader_advertise,
        "monitoring_listen": monitoring_listen,
        "durability": durability,
        "processors": cpus,
        "log_level": log_level,
        "log_format": log_format,
    }
    chosen = configured(load_node_config, config, flags)
    from penstock.runtime.process import run_node

    run_role(
        partial(run_node, chosen),
        lambda node: _ready_facts(node, chosen, time.perf_counter() - started),
        lambda node, facts: _show(node, chosen, facts),
        json=json,
        ready_file=ready_file,
    )


def _ready_facts(node: ClusterNode, config: NodeConfig, seconds: float) -> dict[str, Any]:
    """Where everything is, for programs."""
    from penstock import __version__
    from penstock.metadata.store.etcd_settings import without_password

    report = node.report
    return {
        "event": "ready",
        "version": __version__,
        "node": node.name,
        "zone": config.cluster_zone,
        "url": f"penstock://{node.address}",
        "host": node.address.host,
        "port": node.address.port,
        "peers": str(node.peers_address),
        "reader": str(node.reader_address) if node.reader_address is not None else None,
        "metrics_url": node.monitoring.url if node.monitoring is not None else None,
        "cluster": without_password(config.cluster_metadata or ""),
        "data_directory": node.directory,
        "durability": config.durability,
        "process": os.getpid(),
        "start_seconds": round(seconds, 4),
        "recovery": {
            "partitions": report.queues,
            "messages": report.messages,
            "records_replayed": report.replayed,
            "torn_tail": report.torn,
            "damages": list(report.damages),
        },
    }


def _show(node: ClusterNode, config: NodeConfig, facts: dict[str, Any]) -> None:
    report = node.report
    print_facts(
        f"Penstock {facts['version']}, node {node.name}, is ready",
        {
            "native": f"{node.address}  (for front ends that know the cluster's secret)",
            "peers": facts["peers"],
            "readers": facts["reader"] or "through front ends",
            "zone": config.cluster_zone or "none",
            "cluster": facts["cluster"],
            "metrics": facts["metrics_url"] or "off",
            "data": node.directory,
            "recovered": f"{report.queues:,} partitions, {report.messages:,} messages, "
            f"{report.replayed:,} records replayed",
            "started in": f"{facts['start_seconds']:.2f} s",
        },
    )
    for damage in report.damages:
        console().print(f"  damaged, to be restored from a replica: {damage}", style="bold red", markup=False)
