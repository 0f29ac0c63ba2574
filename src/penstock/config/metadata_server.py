"""What `penstock metadata` can be told: a server of the cluster's metadata, with a cache, before its etcd."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """Everything `penstock metadata` runs with."""

    metadata_listen: Address = field(
        default=Address("127.0.0.1", METADATA_PORT),
        metadata=option(
            "metadata.listen",
            kinds.address(METADATA_PORT),
            "Where a metadata server is asked by front ends and by other metadata servers. Port 0 lets the system "
            "choose one.",
            "--listen",
        ),
    )
    metadata_advertise: Address | None = field(
        default=None,
        metadata=option(
            "metadata.advertise",
            kinds.optional("none", kinds.address(METADATA_PORT, lowest_port=1)),
            "How others reach a metadata server, where that is another address than it listens on.",
            "--advertise",
        ),
    )
    metadata_organisation: Organisation = field(
        default="replicated",
        metadata=option(
            "metadata.organisation",
            kinds.choice("replicated", "sharded-direct", "sharded-forwarding"),
            "How metadata servers share their work. `replicated`: each keeps everything and any is asked. "
            "`sharded-direct`: each keeps a part and is asked for that. `sharded-forwarding`: each keeps a part, any is "
            "asked and passes on what is another's. The same for all of a cluster.",
            "--organisation",
        ),
    )
    metadata_copies: int = field(
        default=2,
        metadata=option(
            "metadata.copies",
            kinds.count(1, 16),
            "On how many metadata servers each part is kept. The same for all of a cluster.",
            "--copies",
        ),
    )
    metadata_cache_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "metadata.cache_size",
            kinds.size(1 * MEBIBYTE, 1024 * GIBIBYTE),
            "Memory for entries that a metadata server keeps; what was used longest ago goes first.",
        ),
    )
    metadata_max_connections: int = field(
        default=4096,
        metadata=option(
            "metadata.max_connections",
            kinds.count(1, 1_000_000),
            "How many may be connected to a metadata server at once: three for each front end.",
        ),
    )


OPTIONS = options_of(MetadataServerConfig)
