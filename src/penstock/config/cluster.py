"""What every process of a cluster is told: its name, where the metadata is, and what it proves to the others."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.option import option
from penstock.config.shared import SharedOptions


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(SharedOptions):
    """The part of a configuration that processes of a cluster share."""

    cluster_name: str | None = field(
        default=None,
        metadata=option(
            "cluster.name",
            kinds.optional(
                "none", kinds.matching(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", "1 to 63 letters, digits, - _ .")
            ),
            "What this process is called in its cluster; `none`: it makes a name up.",
            "--name",
        ),
    )
    cluster_metadata: str | None = field(
        default=None,
        metadata=option(
            "cluster.metadata",
            kinds.optional(
                "none",
                kinds.matching(
                    r"(etcds?|(penstock-)?metadata)://\S+",
                    "a URL such as etcd://HOST:PORT or metadata://HOST:PORT",
                ),
            ),
            "Where the cluster's metadata is: its etcd, or its metadata servers. `none`: there is no cluster.",
            "--cluster",
        ),
    )
    cluster_secret_file: str | None = field(
        default=None,
        metadata=option(
            "cluster.secret_file",
            kinds.optional("none", kinds.file()),
            "The file with the secret (16 bytes or more) that all processes of the cluster know and prove to each other.",
            "--secret-file",
        ),
    )
