"""What is under way to a replica stays within the window of its stream, however many partitions it has to catch up with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.backend.node import whole_state
from penstock.model.batch import Buffer, encode_parts
from penstock.replication.primary_secondary.node import peer_stream
from penstock.replication.primary_secondary.node.leader import recent_entries
from penstock.replication.primary_secondary.node.leader import sender as leading
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.storage import replica_log
from penstock.wire import messages
from penstock.wire.peer_messages import PeerMessage
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same

PARTITIONS = 12
BODY = b"x" * 400
PIECE = 2_000
WINDOW = 4_000
ENTRY = 600
"""More than a batch of one body and its record take."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_stream, "WINDOW_BYTES", WINDOW)
    monkeypatch.setattr(leading, "APPEND_BYTES", PIECE)
    monkeypatch.setattr(replica_log, "READ_BYTES", PIECE)
    monkeypatch.setattr(whole_state, "_WALK_BYTES", PIECE)
    monkeypatch.setattr(recent_entries, "RECENT_BYTES", 1)


def test_reads_for_many_partitions_do_not_pass_the_window_together(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[int] = []
    send = PeerStream.send

    def noted(stream: PeerStream, message: PeerMessage, body: Sequence[Buffer] = ()) -> None:
        send(stream, message, body)
        if stream.node == "c":
            under_way.append(stream.sent_bytes - stream.confirmed_bytes)

    cluster = Cluster()
    for partition in range(1, PARTITIONS + 1):
        cluster.create(f"q{partition}", partition)
    cluster.settle()
    cluster.parted.add(frozenset("ac"))
    cluster.cut("a", "c")
    cluster.settle()
    for partition in range(1, PARTITIONS + 1):
        for number in range(1, 9):
            cluster.ask(messages.Send(partition, 7, number), encode_parts([BODY]), partition)
    cluster.parted.clear()
    monkeypatch.setattr(PeerStream, "send", noted)
    cluster.connect()
    for _ in range(300):
        cluster.now_ms += 1
        for machine in cluster.machines.values():
            machine.turn()
        for pair in list(cluster.pipes):
            # The replica says where it stands, and is slow to confirm what came.
            if pair != ("c", "a") or not any(under_way):
                cluster.deliver(pair)
    cluster.settle()
    assert all("c" in cluster.entry(partition).in_sync for partition in range(1, PARTITIONS + 1))
    assert_same(cluster)
    assert PIECE < max(under_way) < WINDOW + 2 * (PIECE + ENTRY)
