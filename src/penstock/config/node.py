"""What `penstock node run` can be told: a node of a cluster, which keeps messages and speaks no SQS."""

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
    """Everything `penstock node run` runs with."""

    cluster_zone: str = field(
        default="",
        metadata=option(
            "cluster.zone",
            kinds.matching(r"[A-Za-z0-9_.-]{0,63}", "at most 63 letters, digits, - _ ."),
            "Where a node stands (rack, room, provider's zone): replicas are spread over as many zones as there are.",
            "--zone",
        ),
    )
    cluster_peers_listen: Address = field(
        default=Address("127.0.0.1", PEERS_PORT),
        metadata=option(
            "cluster.peers_listen",
            kinds.address(PEERS_PORT),
            "Where a node listens for the other nodes. Port 0 lets the system choose one.",
            "--peers-listen",
        ),
    )
    cluster_advertise: Address | None = field(
        default=None,
        metadata=option(
            "cluster.advertise",
            kinds.optional("none", kinds.address(NATIVE_PORT, lowest_port=1)),
            "How front ends reach a node, where that is another address than it listens on.",
            "--advertise",
        ),
    )
    cluster_peers_advertise: Address | None = field(
        default=None,
        metadata=option(
            "cluster.peers_advertise",
            kinds.optional("none", kinds.address(PEERS_PORT, lowest_port=1)),
            "How other nodes reach a node, where that is another address than it listens on.",
            "--peers-advertise",
        ),
    )
    reader_listen: Address | None = field(
        default=None,
        metadata=option(
            "node.reader_listen",
            kinds.optional("off", kinds.address(READER_PORT)),
            "Where clients read logs straight from a node, each with a ticket that a front end gave it; off: all reading "
            "goes through front ends. Port 0 lets the system choose one.",
            "--reader-listen",
        ),
    )
    reader_advertise: Address | None = field(
        default=None,
        metadata=option(
            "node.reader_advertise",
            kinds.optional("none", kinds.address(READER_PORT, lowest_port=1)),
            "How clients reach `node.reader_listen`, where that is another address than it listens on.",
            "--reader-advertise",
        ),
    )


OPTIONS = options_of(NodeConfig)
