"""A primary of a version that is yet to come, and replicas of this one."""

from __future__ import annotations

import logging

import msgspec
import pytest

from penstock.model.batch import encode_parts
from penstock.model.records import OffsetCommitted
from penstock.model.settings import QueueSettings
from penstock.queue import snapshot
from penstock.queue.partition import Partition
from penstock.storage.errors import StorageVersionError
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.replication.cluster import Cluster, Machine

NEWER_RECORD = msgspec.msgpack.encode([99, "who knows"])
LATER = {"flavour": "sweet"}


def held(machine: Machine) -> Partition:
    assert machine.node is not None
    return machine.node.replication.state.parts.catalogue.partitions[1]


def write_newer_record(machine: Machine) -> None:
    """As a newer primary does: it knows what the record means, and its replicas do not."""
    assert machine.node is not None
    parts = machine.node.replication.state.parts
    partition = held(machine)
    parts.logbook.copy(partition, OffsetCommitted("readers", 1, 1), NEWER_RECORD, None)
    assert parts.logbook.written is not None
    parts.logbook.written(1, partition.index, NEWER_RECORD, b"")


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
    image = msgspec.msgpack.decode(snapshot.dump(partition))
    image[3] = {**image[3], **image[3].pop("later")}  # as the newer version itself writes it
    for state in (snapshot.dump(partition), msgspec.msgpack.encode(image)):
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
            "partition 1 of 'q' is followed no further: a newer Penstock wrote it, and this process is too old for it "
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
            node.peer_frame("b", frame, cluster.now_ms)
    assert [record.getMessage() for record in caplog.records] == [
        (
            "something that node b says is left out: a newer Penstock wrote it, and this process is too old for it "
            "(a message between nodes of kind 77): upgrade this process"
        )
    ]
    cluster.settle(500)
    assert isinstance(cluster.ask(messages.Send(1), encode_parts([b"one"])), messages.SendResult)


def test_an_image_of_a_newer_version_is_not_taken_for_damage() -> None:
    image = msgspec.msgpack.decode(snapshot.dump(Partition(1, "orders", QueueSettings(), 0)))
    image[0] = snapshot.VERSION + 1
    with pytest.raises(
        msgspec.DecodeError, match="a partition as of version 3 of its image, this one knows 2"
    ):
        snapshot.load(msgspec.msgpack.encode(image))
