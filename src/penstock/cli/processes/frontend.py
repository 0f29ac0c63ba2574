"""`penstock frontend`: the SQS interface in front of a server or a cluster in other processes."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.cli.exits import reported
from penstock.cli.output import print_facts
from penstock.cli.parameters import ConfigFile, Json, ReadyFile
from penstock.cli.processes.role import configured, run_role
from penstock.cli.processes.role_flags import Flags, with_flags
from penstock.cli.processes.serve import sqs_line
from penstock.config import ROLES, FrontendConfig
from penstock.config.roles import FRONTEND

if TYPE_CHECKING:
    from penstock.runtime.processes.front_end import ClusterFrontEnd
    from penstock.runtime.processes.remote_front_end import RemoteFrontEnd


@reported
@with_flags(ROLES[FRONTEND], FrontendConfig)
def frontend(
    flags: Flags,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    json: Json = False,
) -> None:
    """Run a front end as a separate process, in front of a server or a cluster. Several may serve one server."""
    from penstock.config import load_frontend_config

    chosen = configured(load_frontend_config, config, flags)
    from penstock.runtime.processes.process import run_cluster_front_end, run_front_end

    if chosen.cluster_metadata is not None:
        run_role(
            partial(run_cluster_front_end, chosen),
            _cluster_facts,
            lambda front, facts: _show_cluster(front, facts, chosen.data_directory),
            json=json,
            ready_file=ready_file,
        )
    run_role(
        partial(run_front_end, chosen),
        _ready_facts,
        lambda front, facts: _show(front, facts, chosen.data_directory),
        json=json,
        ready_file=ready_file,
    )


def _ready_facts(front: RemoteFrontEnd) -> dict[str, Any]:
    from penstock import __version__

    return {
        "event": "ready",
        "version": __version__,
        "sqs_url": front.sqs_server.url,
        "backend": str(front.backend),
        "backend_connected": front.connected,
        "metrics_url": front.monitoring.url if front.monitoring is not None else None,
        "process": os.getpid(),
    }


def _show(front: RemoteFrontEnd, facts: dict[str, Any], data: str) -> None:
    found = "connected" if front.connected else "not there yet: requests get 503 until it is"
    print_facts(
        f"Penstock {facts['version']} front end is ready",
        {
            "sqs": sqs_line(front.sqs_server),
            "metrics": facts["metrics_url"] or "off",
            "backend": f"{front.backend}  ({found})",
            "data": data,
        },
    )


def _cluster_facts(front: ClusterFrontEnd) -> dict[str, Any]:
    from penstock import __version__

    return {
        "event": "ready",
        "version": __version__,
        "sqs_url": front.sqs_server.url if front.sqs_server is not None else None,
        "native_url": front.native_url,
        "nodes": front.nodes,
        "nodes_connected": front.connected,
        "metrics_url": front.monitoring.url if front.monitoring is not None else None,
        "process": os.getpid(),
    }


def _show_cluster(front: ClusterFrontEnd, facts: dict[str, Any], data: str) -> None:
    found = "connected" if front.connected else "none can be reached yet: requests get 503 until one is"
    server = front.sqs_server
    print_facts(
        f"Penstock {facts['version']} front end of a cluster is ready",
        {
            "sqs": sqs_line(server) if server is not None else "off",
            "native": facts["native_url"] or "off",
            "metrics": facts["metrics_url"] or "off",
            "nodes": f"{front.nodes}  ({found})",
            "data": data,
        },
    )
