"""`penstock metadata`: a caching server of the cluster's metadata, in front of etcd."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.cli.exits import reported
from penstock.cli.output import print_facts
from penstock.cli.parameters import ConfigFile, Json, ReadyFile
from penstock.cli.processes.role import configured, run_role
from penstock.cli.processes.role_flags import Flags, with_flags
from penstock.config import ROLES, MetadataServerConfig
from penstock.config.roles import METADATA

if TYPE_CHECKING:
    from penstock.runtime.processes.metadata import MetadataProcess


@reported
@with_flags(ROLES[METADATA], MetadataServerConfig, without="data_directory")
def metadata(
    flags: Flags,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    json: Json = False,
) -> None:
    """Run a metadata server of a cluster, which keeps copies of the metadata in memory for front ends."""
    from penstock.config import load_metadata_server_config

    chosen = configured(load_metadata_server_config, config, flags)
    from penstock.runtime.processes.process import run_metadata_server

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
