"""I13 between nodes: data in transit to another node, and not on its disk yet, is bounded by the window of the stream."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.backend.node import whole_state
from penstock.replication.primary_secondary.node import peer_stream
from penstock.replication.primary_secondary.node.leader import sender as leading
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.storage import replica_log
from penstock.storage.options import StorageOptions

NAME = "I13"


def most_bytes(options: StorageOptions) -> int:
    """A window, the piece that filled it, and one that was being read meanwhile; each of both may end beyond its size."""
    filling = max(leading.APPEND_BYTES, replica_log.IMAGE_PART_BYTES)
    read = max(replica_log.READ_BYTES, whole_state._WALK_BYTES)
    beyond = options.entry_bytes_max + peer_stream.FRAME_OVERHEAD_BYTES
    return peer_stream.WINDOW_BYTES + filling + read + 2 * beyond


def passed(name: str, node: ReplicatedNode, bound: int) -> Iterator[str]:
    """Streams with more under way than the bound."""
    for other, stream in node.replication.state.streams.items():
        under_way = stream.sent_bytes - stream.confirmed_bytes
        if under_way > bound:
            yield f"{name} has {under_way} bytes under way to {other}, the window is {peer_stream.WINDOW_BYTES}"
