"""`penstock metadata`: a server of the cluster's metadata, with a cache, before its etcd."""

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
    ReadyFile,
    TlsCa,
    TlsCertificate,
    TlsKey,
)
from penstock.cli.role import configured, run_role

if TYPE_CHECKING:
    from penstock.config import MetadataServerConfig
    from penstock.runtime.metadata_service import MetadataProcess


@reported
def metadata(
    etcd: Annotated[
        str | None,
        typer.Option(
            "--etcd",
            help="The cluster's etcd, such as etcd://127.0.0.1:2379.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            help="Where front ends and other metadata servers connect (127.0.0.1:9327).",
            metavar="HOST:PORT",
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
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="What this server is called in the cluster; shards belong to names, so keep it.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            "--advertise",
            help="How others reach it, if not where it listens.",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    organisation: Annotated[
        str | None,
        typer.Option(
            "--organisation",
            help="How the servers share their work: replicated (each keeps everything), sharded-direct or "
            "sharded-forwarding.",
            show_default=False,
        ),
    ] = None,
    copies: Annotated[
        str | None,
        typer.Option("--copies", help="On how many servers each shard is kept (2).", show_default=False),
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
    """Run a metadata server of a cluster: what front ends look up, kept in memory before etcd."""
    from penstock.config import load_metadata_server_config

    flags = {
        "cluster_metadata": etcd,
        "metadata_listen": listen,
        "cluster_secret_file": secret_file,
        "cluster_tls_certificate": tls_certificate,
        "cluster_tls_key": tls_key,
        "cluster_tls_ca": tls_ca,
        "cluster_name": name,
        "metadata_advertise": advertise,
        "metadata_organisation": organisation,
        "metadata_copies": copies,
        "processors": cpus,
        "log_level": log_level,
        "log_format": log_format,
    }
    chosen = configured(load_metadata_server_config, config, flags)
    from penstock.runtime.process import run_metadata_server

    run_role(
        partial(run_metadata_server, chosen),
        lambda server: _ready_facts(server, chosen),
        lambda server, facts: _show(server, chosen, facts),
        json=json,
        ready_file=ready_file,
    )


def _ready_facts(server: MetadataProcess, config: MetadataServerConfig) -> dict[str, Any]:
    from penstock import __version__

    return {
        "event": "ready",
        "version": __version__,
        "name": server.name,
        "url": f"penstock-metadata://{server.address}",
        "address": server.address,
        "organisation": config.metadata_organisation,
        "copies": config.metadata_copies,
        "store_connected": server.following,
        "process": os.getpid(),
    }


def _show(server: MetadataProcess, config: MetadataServerConfig, facts: dict[str, Any]) -> None:
    found = "connected" if server.following else "not there yet: looked for until it is"
    kept = (
        "everything"
        if config.metadata_organisation == "replicated"
        else f"{config.metadata_copies} of each shard"
    )
    print_facts(
        f"Penstock {facts['version']} metadata server {server.name} is ready",
        {
            "listens": facts["url"],
            "organisation": f"{config.metadata_organisation}  (kept: {kept})",
            "etcd": found,
        },
    )
