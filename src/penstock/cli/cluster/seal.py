"""`penstock cluster seal`: an operator confirms the layout that processes of an earlier version wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.cluster.target import (
    DEFAULT_DIRECTORY,
    ClusterData,
    EtcdUrl,
    cluster_errors,
    running_cluster,
    with_store,
)
from penstock.cli.confirmation import confirm_loss
from penstock.cli.exits import USAGE, CommandError, reported
from penstock.cli.output import print_json, print_line
from penstock.cli.parameters import Json, Yes


@reported
def seal(
    data: ClusterData = DEFAULT_DIRECTORY,
    etcd: EtcdUrl = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            "--secret-file",
            help="With --etcd: the file with the cluster's secret.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Seal the queues and partitions that are in the layout now.

    A seal shows that a process of the cluster wrote an entry; entries without a seal are ignored. Needed once, after the last
    process of a version without seals has stopped: then cluster.seals can have its default value, required.
    """
    from penstock.metadata.remote.settings import MetadataUrlError, read_secret
    from penstock.metadata.seals.sealing import seal_kinds
    from penstock.metadata.seals.seals import layout_sealers

    with cluster_errors():
        if etcd is None:
            cluster = running_cluster(data)
            url, file = cluster.plan.etcd_url, cluster.directory.secret_file
        elif secret_file is None:
            raise CommandError("name the cluster's secret with --secret-file FILE", USAGE)
        else:
            url, file = etcd, Path(secret_file)
        try:
            sealers = layout_sealers(read_secret(file))
        except MetadataUrlError as error:
            raise CommandError(str(error), USAGE) from None
        if not yes:
            confirm_loss(
                "Do you confirm the queues and partitions that `penstock cluster status` shows, and seal them?"
            )
        kept = ("cluster/queues/", "cluster/partitions/", "cluster/ids")
        count = with_store(url, lambda store: seal_kinds(store, sealers, kept))
    if json:
        print_json({"event": "sealed", "entries": count})
    else:
        print_line(f"{count} entries are sealed." if count else "Everything is sealed.")
