"""`penstock frontend`: the SQS interface in front of a server or a cluster that runs elsewhere."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.exits import reported
from penstock.cli.output import print_facts
from penstock.cli.parameters import (
    ConfigFile,
    Cpus,
    Json,
    LogFormat,
    LogLevel,
    NativeTlsCertificate,
    NativeTlsKey,
    ReadyFile,
    TlsCa,
    TlsCertificate,
    TlsKey,
)
from penstock.cli.role import configured, run_role
from penstock.cli.serve import sqs_line

if TYPE_CHECKING:
    from penstock.runtime.cluster_front_end import ClusterFrontEnd
    from penstock.runtime.remote_front_end import RemoteFrontEnd


@reported
def frontend(
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            help="The server that keeps the queues (127.0.0.1:9326).",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="The metadata of a cluster, such as etcd://127.0.0.1:2379; instead of --backend.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            "--secret-file",
            help="With --cluster: the file with the secret that all its processes know.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    native_listen: Annotated[
        str | None,
        typer.Option(
            "--native-listen",
            help="With --cluster: where clients connect with the native protocol.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="With --cluster: what this front end is called in it.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    sqs_listen: Annotated[
        str | None,
        typer.Option(
            "--sqs-listen",
            help="Where SQS clients connect (127.0.0.1:9324).",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="The directory for users, metadata and usage; front ends of one server share it.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    monitoring_listen: Annotated[
        str | None,
        typer.Option(
            "--monitoring-listen",
            help="Where monitoring looks (nowhere).",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    backend_ca: Annotated[
        str | None,
        typer.Option(
            "--backend-ca",
            help="With --backend over TLS: the authority that signed the server's certificate; or system.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    native_tls_certificate: NativeTlsCertificate = None,
    native_tls_key: NativeTlsKey = None,
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
    """Run a front end of its own: SQS in, the native protocol out. Several may serve one server."""
    from penstock.config import load_frontend_config

    flags = {
        "backend": backend,
        "backend_ca": backend_ca,
        "native_tls_certificate": native_tls_certificate,
        "native_tls_key": native_tls_key,
        "cluster_metadata": cluster,
        "cluster_secret_file": secret_file,
        "cluster_tls_certificate": tls_certificate,
        "cluster_tls_key": tls_key,
        "cluster_tls_ca": tls_ca,
        "cluster_name": name,
        "native_listen": native_listen,
        "sqs_listen": sqs_listen,
        "monitoring_listen": monitoring_listen,
        "data_directory": data,
        "processors": cpus,
        "log_level": log_level,
        "log_format": log_format,
    }
    chosen = configured(load_frontend_config, config, flags)
    from penstock.runtime.process import run_cluster_front_end, run_front_end

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
        "sqs_url": front.front_door.url,
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
            "sqs": sqs_line(front.front_door),
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
        "sqs_url": front.front_door.url if front.front_door is not None else None,
        "native_url": front.native_url,
        "nodes": front.nodes,
        "nodes_connected": front.connected,
        "metrics_url": front.monitoring.url if front.monitoring is not None else None,
        "process": os.getpid(),
    }


def _show_cluster(front: ClusterFrontEnd, facts: dict[str, Any], data: str) -> None:
    found = "connected" if front.connected else "none can be reached yet: requests get 503 until one is"
    door = front.front_door
    print_facts(
        f"Penstock {facts['version']} front end of a cluster is ready",
        {
            "sqs": sqs_line(door) if door is not None else "off",
            "native": facts["native_url"] or "off",
            "metrics": facts["metrics_url"] or "off",
            "nodes": f"{front.nodes}  ({found})",
            "data": data,
        },
    )
