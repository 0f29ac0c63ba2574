"""The options of every process of a cluster: its name, the metadata store, and its credentials for the others."""

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
                "none",
                kinds.matching(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", "1 to 63 letters, digits, - _ .", "NAME"),
            ),
            "Name of this process in its cluster. `none`: it chooses a name. The data of a node, and the part of the "
            "metadata that a metadata server keeps, belong to its name.",
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
                    "URL",
                ),
            ),
            "Address of the cluster's metadata: its etcd or its metadata servers. `none`: no cluster.",
            "--cluster",
        ),
    )
    cluster_secret_file: str | None = field(
        default=None,
        metadata=option(
            "cluster.secret_file",
            kinds.optional("none", kinds.file()),
            "File with the cluster's secret (16 bytes or more), with which its processes authenticate each "
            "other.",
            "--secret-file",
        ),
    )
    cluster_seals: Seals = field(
        default="required",
        metadata=option(
            "cluster.seals",
            kinds.choice("required", "optional"),
            "Whether entries of the cluster's metadata must have a seal, which shows that a process of the "
            "cluster wrote them. `optional` also accepts nodes, queues and partitions without one: use it "
            "only while processes of an earlier version run. Users and access keys always need seals.",
        ),
    )
    cluster_tls_certificate: str | None = field(
        default=None,
        metadata=option(
            "cluster.tls_certificate",
            kinds.optional("none", kinds.file()),
            "Certificate (PEM, with its chain) of this process for TLS inside the cluster. With it, all "
            "connections between processes are encrypted, and a process without a certificate of "
            "`cluster.tls_ca` is refused. `none`: no TLS. Use it for all processes of a cluster or for none.",
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
            "Authority (PEM, several are allowed) that signed the certificates of the cluster's processes. "
            "Every holder of such a certificate belongs to the cluster, so the authority must sign for "
            "nothing else.",
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
            "DNS name that the certificates of all processes of the cluster must contain as a subject "
            "alternative name; needed if the authority also signs for others. `host`: a certificate must "
            "name the host or IP address under which its process was reached. `none`: names are not checked.",
        ),
    )
