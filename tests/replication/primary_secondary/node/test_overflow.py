"""A full queue that drops its oldest messages drops none for a batch that is refused."""

from __future__ import annotations

from penstock.model.batch import encode_parts
from penstock.storage.errors import JournalBusyError
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster


def test_nothing_is_dropped_for_a_batch_that_finds_no_room_in_the_journal() -> None:
    cluster = Cluster()
    cluster.create("q", 1, ("a", "b"), max_messages=3, overflow="drop-oldest")
    cluster.settle(800)
    for body in (b"one", b"two", b"three"):
        assert isinstance(cluster.ask(messages.Send(1), encode_parts([body])), messages.SendResult)
    node = cluster.serving(1).node
    assert node is not None
    journal = node._store._journal
    put, is_busy = journal._put, [True]

    def busy(
        kind: int, partition: int, index: int, head: bytes, payload: list[bytes], *, reserve: bool
    ) -> int:
        if partition == 1 and payload and is_busy:
            raise JournalBusyError("the next journal file is not ready yet")
        return put(kind, partition, index, head, payload, reserve=reserve)

    journal._put = busy  # type: ignore[method-assign, assignment]  # of this object alone
    refused = cluster.ask(messages.Send(1), encode_parts([b"four", b"five", b"six"]))
    assert isinstance(refused, messages.Failed)
    is_busy.clear()
    cluster.settle(500)
    partition = node.replication.state.parts.catalogue.partitions[1]
    assert (partition.table.messages, partition.totals.dropped) == (3, 0)
    assert isinstance(cluster.ask(messages.Send(1), encode_parts([b"four"])), messages.SendResult)
    assert (partition.table.messages, partition.totals.dropped) == (3, 1)
