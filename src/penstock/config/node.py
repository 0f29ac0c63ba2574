"""The options of `penstock node run`: a node of a cluster, which stores messages and has no SQS server."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.cluster import ClusterOptions
from penstock.config.engine import NATIVE_PORT, EngineOptions
from penstock.config.option import option, options_of

PEERS_PORT = 9328
READER_PORT = 9329


@dataclass(frozen=True, kw_only=True)
class NodeConfig(EngineOptions, ClusterOptions):
    """All options of `penstock node run`."""

    cluster_zone: str = field(
        default="",
        metadata=option(
            "cluster.zone",
            kinds.matching(r"[A-Za-z0-9_.-]{0,63}", "at most 63 letters, digits, - _ .", "ZONE"),
            "Zone of a node, such as its rack, room or availability zone. Replicas are spread over as many "
            "zones as there are.",
            "--zone",
        ),
    )
    cluster_peers_listen: Address = field(
        default=Address("127.0.0.1", PEERS_PORT),
        metadata=option(
            "cluster.peers_listen",
            kinds.address(PEERS_PORT),
            "Address for the other nodes. Port 0 chooses a free port.",
            "--peers-listen",
        ),
    )
    cluster_advertise: Address | None = field(
        default=None,
        metadata=option(
            "cluster.advertise",
            kinds.optional("none", kinds.address(NATIVE_PORT, lowest_port=1)),
            "Address under which front ends reach a node, if it differs from `native.listen`.",
            "--advertise",
        ),
    )
    cluster_peers_advertise: Address | None = field(
        default=None,
        metadata=option(
            "cluster.peers_advertise",
            kinds.optional("none", kinds.address(PEERS_PORT, lowest_port=1)),
            "Address under which other nodes reach a node, if it differs from `cluster.peers_listen`.",
            "--peers-advertise",
        ),
    )
    reader_listen: Address | None = field(
        default=None,
        metadata=option(
            "node.reader_listen",
            kinds.optional("off", kinds.address(READER_PORT)),
            "Address for clients that read logs directly from a node, with a ticket of a front end. `off`: "
            "all reads go through front ends. Port 0 chooses a free port.",
            "--reader-listen",
        ),
    )
    reader_advertise: Address | None = field(
        default=None,
        metadata=option(
            "node.reader_advertise",
            kinds.optional("none", kinds.address(READER_PORT, lowest_port=1)),
            "Address under which clients reach `node.reader_listen`, if it differs.",
            "--reader-advertise",
        ),
    )


OPTIONS = options_of(NodeConfig)
