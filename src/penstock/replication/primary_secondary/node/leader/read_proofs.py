"""What a primary must know before it answers a request that only reads: that it was not deposed long ago.

What a `sync` primary writes is committed by the word of every replica that could lead instead. A read writes nothing, so a
primary that was deposed and has not heard of it could go on answering with an old end of the log. So it must have
heard from all replicas in sync, as ones that follow it, within `READ_MS`. Every record that they confirm says so. Where
there was none lately they are sent an empty append, and the answer waits for their word. So a partition that is read and not
written to costs a question a second, and one that is not used costs none. One that does not answer lags, and is taken out
of the in-sync set as with writes.

An `async` primary serves only under its node's lease, which says the same.
"""

from __future__ import annotations

from penstock.replication.primary_secondary.node.leader.sender import LedPartition, Sender
from penstock.replication.primary_secondary.node.state import ClusterState

READ_MS = 1_000
"""A primary that was deposed and has not heard of it answers reads for so long at most."""


class ReadProofs:
    """The partitions with reads that wait for the word of their replicas."""

    def __init__(self, state: ClusterState, sender: Sender) -> None:
        self._state = state
        self._sender = sender
        self._waiting: dict[int, int] = {}
        """Partition → since when this node must be known to be its only primary."""

    def known_since(self, led: LedPartition, index: int) -> int:
        """Since when that must be known for an answer about what is written up to `index`; 0: it is known, or will be.

        What is not committed yet is committed by the word of all that could lead instead.
        """
        since_ms = self._state.now_ms - READ_MS
        if led.primary.committed < index or led.primary.leads_since(since_ms):
            return 0
        self._waiting[led.partition_id] = since_ms
        return since_ms

    def ask(self) -> list[int]:
        """Asks the replicas that have not been heard of, where a read waits for them; returns the partitions."""
        if not self._waiting:
            return []
        for partition_id, since_ms in list(self._waiting.items()):
            led = self._state.led.get(partition_id)
            unheard = led.primary.unvouched(since_ms) if led is not None else []
            if led is None or not unheard:
                del self._waiting[partition_id]
                continue
            partition = self._state.parts.catalogue.partitions[partition_id]
            for node in unheard:
                stream = self._state.streams.get(node)
                if stream is not None:
                    self._sender.question(led, partition, stream, self._state.now_ms)
        return list(self._waiting)
