"""What every process of a cluster is told: its name, where the metadata is, and what it proves to the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.config import kinds
from penstock.config.option import option
from penstock.config.shared import SharedOptions

Seals = Literal["required", "optional"]


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
    cluster_seals: Seals = field(
        default="required",
        metadata=option(
            "cluster.seals",
            kinds.choice("required", "optional"),
            "Whether entries of the cluster's metadata must carry a seal, which shows that a process of the cluster wrote them. "
            "`optional` also takes entries about nodes, queues and partitions without one: for the time in which processes of "
            "an earlier version run, and no longer. Users and access keys always need theirs.",
        ),
    )
    cluster_tls_certificate: str | None = field(
        default=None,
        metadata=option(
            "cluster.tls_certificate",
            kinds.optional("none", kinds.file()),
            "The certificate (PEM, with its chain) that this process shows to the others of its cluster; with it, all "
            "that they say to each other is encrypted, and whoever shows none of `cluster.tls_ca` is refused. `none`: "
            "no TLS. For all processes of a cluster or for none.",
            "--tls-certificate",
        ),
    )
    cluster_tls_key: str | None = field(
        default=None,
        metadata=option(
            "cluster.tls_key",
            kinds.optional("none", kinds.file()),
            "The private key (PEM, not encrypted) of `cluster.tls_certificate`.",
            "--tls-key",
        ),
    )
    cluster_tls_ca: str | None = field(
        default=None,
        metadata=option(
            "cluster.tls_ca",
            kinds.optional("none", kinds.file()),
            "The authority (PEM, several are allowed) that signed the certificates of all processes of the cluster, and "
            "of nobody else: whoever has a certificate of it belongs to the cluster.",
            "--tls-ca",
        ),
    )
    cluster_tls_name: str | None = field(
        default=None,
        metadata=option(
            "cluster.tls_name",
            kinds.optional(
                "none",
                kinds.matching(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", "a DNS name, or `host`"),
            ),
            "A name that the certificates of all processes of the cluster have as a subject alternative name (DNS), and "
            "that both sides of a connection look for: for an authority that signs for others too. `host`: a "
            "certificate must name the host, or the IP address, at which its process was dialled. `none`: names "
            "are not looked at.",
        ),
    )
