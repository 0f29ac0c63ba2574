"""What a primary must know before it answers a request that only reads: that it was not deposed long ago.

Every replica that could lead instead confirms what a `sync` primary writes. A read writes nothing, so a primary that was
deposed and does not know it could continue to answer with an old end of the log. So within `READ_MS` all replicas in sync
must have confirmed that they follow it. Every record that they confirm says so. If there was none lately, the primary
sends an empty append, and the answer waits for the confirmations. So a partition that is only read costs a question a
second, and an unused one costs none. A replica that does not answer lags, and leaves the in-sync set as with writes.

An `async` primary serves only under its node's lease, which proves the same.
"""

from __future__ import annotations

from penstock.replication.primary_secondary.node.leader.sender import LedPartition, Sender
from penstock.replication.primary_secondary.node.state import ClusterState

READ_MS = 1_000
"""The longest time for which a deposed primary answers reads."""


class ReadProofs:
    """The partitions with reads that wait for confirmations of their replicas."""

    def __init__(self, state: ClusterState, sender: Sender) -> None:
        self._state = state
        self._sender = sender
        self._waiting: dict[int, int] = {}
        """Partition → since when this node must be known to be its only primary."""

    def known_since(self, led: LedPartition, index: int) -> int:
        """The time since which this must be known for an answer about records up to `index`; 0: it is known, or will be.

        Records that are not committed yet will be committed by all replicas that could lead instead.
        """
        since_ms = self._state.now_ms - READ_MS
        if led.primary.committed < index or led.primary.leads_since(since_ms):
            return 0
        self._waiting[led.partition_id] = since_ms
        return since_ms

    def ask(self) -> list[int]:
        """Asks the replicas without a recent confirmation, for partitions with waiting reads; returns the partitions."""
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
