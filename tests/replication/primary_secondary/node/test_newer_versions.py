"""A primary of a version that is yet to come, and replicas of this one."""

from __future__ import annotations

import logging

import msgspec
import pytest

from penstock.backend.node.logbook import WrittenRecord
from penstock.columnar.lifecycle import Change
from penstock.model.batch import encode, encode_parts
from penstock.model.document import TooOldError
from penstock.model.records import NUMBERS_SKIPPED, OffsetCommitted
from penstock.model.settings import QueueSettings
from penstock.queue.partition import Partition
from penstock.queue.snapshot import pages, snapshot
from penstock.queue.snapshot.capture import Capture
from penstock.queue.state import states
from penstock.storage.errors import StorageVersionError
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.replication.primary_secondary.node.cluster import Cluster, Machine

NEWER_RECORD = msgspec.msgpack.encode([99, "who knows"])
LATER = {"flavour": "sweet"}


def held(machine: Machine, partition: int = 1) -> Partition:
    assert machine.node is not None
    return machine.node.replication.state.parts.catalogue.partitions[partition]


def write_newer_record(machine: Machine) -> None:
    """As a newer primary does: it knows what the record means, and its replicas do not."""
    assert machine.node is not None
    parts = machine.node.replication.state.parts
    partition = held(machine)
    parts.logbook.copy(partition, OffsetCommitted("readers", 1, 1), NEWER_RECORD, None)
    assert parts.logbook._written is not None
    parts.logbook._written.append(WrittenRecord(1, partition.index, NEWER_RECORD, b""))


def test_a_setting_of_a_newer_version_reaches_every_replica_and_outlives_restarts_and_failovers() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    entry = cluster.entry()
    cluster.put(
        msgspec.structs.replace(entry, settings=QueueSettings(replicas=3, later=LATER), later={"new": 1})
    )
    cluster.settle(500)
    assert [held(machine).settings.later for machine in cluster.machines.values()] == [LATER] * 3
    assert isinstance(cluster.ask(messages.Send(1), encode_parts([b"one"])), messages.SendResult)
    before = cluster.leader
    before.crash()
    cluster.settle(3_000)
    before.start()
    cluster.settle(3_000)
    assert cluster.entry().epoch == 2
    assert (cluster.entry().later, cluster.entry().settings.later) == ({"new": 1}, LATER)
    assert [held(machine).settings.later for machine in cluster.machines.values()] == [LATER] * 3


def test_a_snapshot_keeps_a_setting_of_a_newer_version() -> None:
    partition = Partition(1, "orders", QueueSettings(later=LATER), 0)
    _, head, *others = buffers_of(partition)
    image = msgspec.msgpack.decode(head[5:])
    image[3] = {**image[3], **image[3].pop("later")}  # as the newer version itself writes it
    written = msgspec.msgpack.encode(image)
    newer = [pages.prefix(1 + len(others)), b"\xc6", len(written).to_bytes(4, "big"), written, *others]
    for state in (snapshot.dump(partition), b"".join(newer)):
        assert snapshot.load(state).settings == partition.settings


def test_a_replica_that_is_too_old_for_a_record_says_so_and_is_no_longer_counted_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    with caplog.at_level(logging.ERROR, "penstock.backend"):
        write_newer_record(cluster.leader)
        cluster.settle(200)
    said = [record.getMessage() for record in caplog.records]
    assert said == 2 * [
        (
            "stopped following partition 1 of 'q': a newer Penstock wrote it, and this process is too old for it "
            "(a record of kind 99): upgrade this process"
        )
    ]
    leader = cluster.leader
    behind = [held(machine).index for machine in cluster.machines.values() if machine is not leader]
    assert behind == 2 * [held(leader).index - 1], "nothing of it is in their journals"
    cluster.settle(20_000)
    assert cluster.entry().in_sync == [leader.name]
    for machine in cluster.machines.values():
        if machine is not leader:
            machine.crash()
            machine.start()  # it can still read all that it has


def test_a_node_does_not_open_a_journal_that_it_is_too_old_for() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    leader = cluster.leader
    write_newer_record(leader)
    cluster.settle(200)
    leader.crash()
    with pytest.raises(StorageVersionError, match=r"the journal: .* too old for it \(a record of kind 99\)"):
        leader.start()


def test_what_a_newer_node_says_beyond_this_version_s_words_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    node = cluster.machines["a"].node
    assert node is not None
    with caplog.at_level(logging.WARNING, "penstock.backend"):
        for _ in range(3):
            frame = Frame(0, memoryview(msgspec.msgpack.encode([77, 1, 2])), memoryview(b"much"))
            node.replication.peer_frame("b", frame, cluster.now_ms)
    assert [record.getMessage() for record in caplog.records] == [
        (
            "ignored a message from node b: a newer Penstock wrote it, and this process is too old for it "
            "(a message between nodes of kind 77): upgrade this process"
        )
    ]
    cluster.settle(500)
    assert isinstance(cluster.ask(messages.Send(1), encode_parts([b"one"])), messages.SendResult)


def test_a_state_of_a_newer_version_is_not_taken_for_damage() -> None:
    """Of whatever form it is, as long as it says what it needs where every version looks for that."""
    newer = [3, 0, "", {"needs": 3}, b"something"]
    with pytest.raises(TooOldError, match="needs version 3 of the documents"):
        snapshot.load(msgspec.msgpack.encode(newer))
    with pytest.raises(TooOldError, match="a page of a state of kind 99"):
        snapshot.load(pages.prefix(1) + b"\xc6\x00\x00\x00\x02\x91\x63")


def buffers_of(partition: Partition) -> list[bytes]:
    capture = Capture(partition, exact=True)
    while not capture.is_done:
        capture.step(1)
    return capture.buffers


def _send_duplicate(cluster: Cluster, number: int) -> messages.Answer:
    body = encode([b"x"], deduplication_ids=[b"a"])
    return cluster.ask(messages.Send(1, 7, number), body.data)


def test_a_batch_of_duplicates_is_remembered_through_a_failover() -> None:
    cluster = Cluster()
    cluster.create(deduplication_window_ms=1_000)
    cluster.settle(500)
    for number in (1, 2):
        assert isinstance(_send_duplicate(cluster, number), messages.SendResult)
    cluster.settle(200)
    cluster.leader.crash()
    cluster.settle(3_000)
    again = _send_duplicate(cluster, 2)
    assert isinstance(again, messages.SendResult)
    assert (again.runs, again.duplicates) == ([(1, 1)], [0])
    assert held(cluster.leader).table.messages == 1


def test_replicas_of_an_earlier_version_hear_of_no_batch_of_duplicates() -> None:
    cluster = Cluster()
    cluster.create(deduplication_window_ms=1_000)
    cluster.settle(500)
    cluster.records["c" if cluster.leader.name != "c" else "b"] = 0
    cluster.tell_nodes()
    _send_duplicate(cluster, 1)
    before = held(cluster.leader).index
    assert isinstance(_send_duplicate(cluster, 2), messages.SendResult)
    assert held(cluster.leader).index == before


SOURCE, TARGET = 1, 2


def _give_back_for_the_last_time(cluster: Cluster) -> int:
    """Of a queue whose messages may be received once; returns how many records that is."""
    body = encode_parts([b"one", b"two"])
    assert isinstance(cluster.ask(messages.Send(SOURCE), body), messages.SendResult)
    given = cluster.ask(messages.Receive(SOURCE, 2))
    assert isinstance(given, messages.Delivery)
    partition = held(cluster.leader)
    receipt = messages.Receipt(given.token, [(batch.first, batch.count) for batch in given.batches])
    before = partition.index
    request_id = cluster.leader.request(messages.Release([receipt], error="ValueError"))
    written = partition.index - before
    assert partition.table.counts[states.READY] == 0
    cluster.settle(500)
    settled = cluster.leader.answers[request_id]
    assert isinstance(settled, messages.Settled)
    assert settled.outcomes == [messages.ReceiptOutcome(2, 0, [])]
    return written


@pytest.mark.parametrize("older", [None, NUMBERS_SKIPPED, 0])
def test_spent_messages_leave_in_one_record_whichever_versions_follow(older: int | None) -> None:
    cluster = Cluster()
    cluster.create("q", SOURCE, dead_letter_queue="dead", max_receives=1, lifecycle=True)
    cluster.create("dead", TARGET)
    cluster.settle(500)
    if older is not None:
        cluster.records["c" if cluster.leader.name != "c" else "b"] = older
        cluster.tell_nodes()
    assert _give_back_for_the_last_time(cluster) == 1
    cluster.settle(2_000)
    assert held(cluster.serving(TARGET), TARGET).table.counts[states.READY] == 2
    for machine in cluster.machines.values():
        assert snapshot.dump(held(machine)) == snapshot.dump(held(cluster.leader))
    lifecycle = held(cluster.leader).lifecycle
    assert lifecycle is not None
    changes = [row.change for row in lifecycle.waiting]
    assert (Change.RELEASED in changes) is (older is None), (
        "replicas of other versions would count other rows"
    )
    assert Change.MOVE_STARTED in changes
