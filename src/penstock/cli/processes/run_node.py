"""`penstock node run`: a node of a cluster, which holds partitions of queues by the cluster's layout."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.cli.exits import reported
from penstock.cli.output import console, print_facts
from penstock.cli.parameters import ConfigFile, Json, ReadyFile
from penstock.cli.processes.role import configured, run_role
from penstock.cli.processes.role_flags import Flags, with_flags
from penstock.config import ROLES, NodeConfig
from penstock.config.roles import NODE

if TYPE_CHECKING:
    from penstock.runtime.processes.node import ClusterNode


@reported
@with_flags(ROLES[NODE], NodeConfig)
def run(
    flags: Flags,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    json: Json = False,
) -> None:
    """Run a node of a cluster. It holds the partitions that the layout assigns to it."""
    started = time.perf_counter()
    from penstock.config import load_node_config

    chosen = configured(load_node_config, config, flags)
    from penstock.runtime.processes.process import run_node

    run_role(
        partial(run_node, chosen),
        lambda node: _ready_facts(node, chosen, time.perf_counter() - started),
        lambda node, facts: _show(node, chosen, facts),
        json=json,
        ready_file=ready_file,
    )


def _ready_facts(node: ClusterNode, config: NodeConfig, seconds: float) -> dict[str, Any]:
    """All addresses, for programs."""
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
