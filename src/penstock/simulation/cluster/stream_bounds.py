"""I13 between nodes: what is under way to another node, and not on its disk yet, is bounded by the window of the stream."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.backend.replication import leading, peer_stream
from penstock.backend.replication.replicated_node import ReplicatedNode
from penstock.storage import replica_log
from penstock.storage.options import StorageOptions

NAME = "I13"


def passed(name: str, node: ReplicatedNode, options: StorageOptions) -> Iterator[str]:
    """Streams with more under way than a window and one piece of data."""
    piece = max(leading.APPEND_BYTES, replica_log.READ_BYTES, replica_log.IMAGE_PART_BYTES)
    bound = peer_stream.WINDOW_BYTES + piece + options.entry_bytes_max
    for other, stream in node.replication.state.streams.items():
        under_way = stream.sent_bytes - stream.confirmed_bytes
        if under_way > bound:
            yield f"{name} has {under_way} bytes under way to {other}, the window is {peer_stream.WINDOW_BYTES}"
