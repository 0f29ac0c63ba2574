"""The options of `penstock metadata`: a caching server of the cluster's metadata, in front of etcd."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.cluster import ClusterOptions
from penstock.config.option import option, options_of
from penstock.model.limits import MEBIBYTE

METADATA_PORT = 9327
GIBIBYTE = 1024 * MEBIBYTE

Organisation = Literal["replicated", "sharded-direct", "sharded-forwarding"]


@dataclass(frozen=True, kw_only=True)
class MetadataServerConfig(ClusterOptions):
    """All options of `penstock metadata`."""

    cluster_metadata: str | None = field(
        default=None,
        metadata={"option": replace(options_of(ClusterOptions)["cluster.metadata"][1], flag="--etcd")},
    )
    metadata_listen: Address = field(
        default=Address("127.0.0.1", METADATA_PORT),
        metadata=option(
            "metadata.listen",
            kinds.address(METADATA_PORT),
            "Address for front ends and other metadata servers. Port 0 chooses a free port.",
            "--listen",
        ),
    )
    metadata_advertise: Address | None = field(
        default=None,
        metadata=option(
            "metadata.advertise",
            kinds.optional("none", kinds.address(METADATA_PORT, lowest_port=1)),
            "Address under which others reach this metadata server, if it differs from `metadata.listen`.",
            "--advertise",
        ),
    )
    metadata_organisation: Organisation = field(
        default="replicated",
        metadata=option(
            "metadata.organisation",
            kinds.choice("replicated", "sharded-direct", "sharded-forwarding"),
            "How metadata servers share the entries. `replicated`: each holds all entries and any of them "
            "is asked. `sharded-direct`: each holds a part, and clients ask the right server. "
            "`sharded-forwarding`: each holds a part, any of them is asked and forwards the request. Set "
            "the same value on all servers.",
            "--organisation",
        ),
    )
    metadata_copies: int = field(
        default=2,
        metadata=option(
            "metadata.copies",
            kinds.count(1, 16),
            "Number of metadata servers that hold each shard. Set the same value on all servers.",
            "--copies",
        ),
    )
    metadata_cache_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "metadata.cache_size",
            kinds.size(1 * MEBIBYTE, 1024 * GIBIBYTE),
            "Memory for the entries of a metadata server. The least recently used entries are removed first.",
        ),
    )
    metadata_max_connections: int = field(
        default=4096,
        metadata=option(
            "metadata.max_connections",
            kinds.count(1, 1_000_000),
            "Maximum number of connections to a metadata server. Each front end needs three.",
        ),
    )


OPTIONS = options_of(MetadataServerConfig)
