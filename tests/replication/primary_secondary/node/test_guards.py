"""What a node is told twice, too late, out of turn or from the wrong place: it changes nothing, or it is damage."""

from __future__ import annotations

import msgspec
import pytest

from penstock.backend.node.logbook import WrittenRecord
from penstock.backend.node.whole_state import Walk
from penstock.model.batch import encode_parts
from penstock.model.records import Deleted, encode_record
from penstock.replication.primary_secondary.node.leader import recent_entries
from penstock.replication.primary_secondary.node.leader.recent_entries import RecentEntries
from penstock.replication.primary_secondary.node.leader.sender import Sender
from penstock.replication.primary_secondary.node.replication import Replication
from penstock.storage.entry import HEADER_BYTES, OFFSET_MASK
from penstock.storage.entry_read import EntryReadJob, ReadEntry
from penstock.storage.journal_file import journal_name
from penstock.wire import messages
from penstock.wire.peer_messages import Image
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same, send
from tests.replication.primary_secondary.node.test_restoring import received


def _replication(cluster: Cluster, name: str) -> Replication:
    node = cluster.machines[name].node
    assert node is not None
    return node.replication


def _served() -> Cluster:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    for number in range(3):
        send(cluster, b"message %d" % number)
    cluster.settle(200)
    return cluster


def test_an_entry_that_was_told_before_changes_nothing() -> None:
    """A watch that begins anew tells of versions again, and perhaps of an older one."""
    cluster = _served()
    replication = _replication(cluster, "b")
    entry, version = cluster.entries[1]
    older = msgspec.structs.replace(entry, epoch=entry.epoch + 5, primary="b")
    replication.apply_layout([(entry, version), (older, version - 1)], cluster.now_ms)
    known = replication.state.layout.get(1)
    assert known is not None
    assert (known.entry.epoch, known.version) == (entry.epoch, version)
    assert 1 not in replication.state.led


def test_parts_of_a_state_that_come_out_of_turn_are_dropped() -> None:
    cluster = _served()
    leader = cluster.leader.name
    name = next(name for name in cluster.machines if name != leader)
    replication = _replication(cluster, name)
    follower, stream = replication.follower, replication.state.streams[leader]
    follower_state = follower.partitions[1]
    for message in (
        Image(1, follower_state.epoch, 9, 1, 2),  # the first part never came
        Image(1, follower_state.epoch - 1, 9, 0, 2),  # of a primary that is deposed
    ):
        follower.take_image(follower_state, stream, message, memoryview(b"part"))
        assert not follower_state.image
    follower.take_image(follower_state, stream, Image(1, follower_state.epoch, 9, 0, 3), memoryview(b"part"))
    follower.take_image(
        follower_state, stream, Image(1, follower_state.epoch, 8, 1, 3), memoryview(b"of another state")
    )
    assert follower_state.image == [b"part"]
    cluster.settle(500)
    assert_same(cluster)


def test_recent_entries_of_a_partition_that_was_forgotten_take_no_others_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent_entries, "RECENT_BYTES", 1_000)
    written = [WrittenRecord(1, 1, b"head", bytes(300))]
    recent = RecentEntries(written)
    recent.forget(1)
    written += [WrittenRecord(2, index, b"head", bytes(300)) for index in (1, 2, 3, 4)]
    assert list(recent.take_touched()) == [1, 2]
    assert recent.since(2, 4, 1_000)
    assert not recent.since(1, 1, 1_000)


def test_a_batch_that_is_not_the_one_of_a_state_is_damage() -> None:
    cluster = _served()
    parts = _replication(cluster, cluster.leader.name).state.parts
    partition = parts.catalogue.partitions[1]
    walk = Walk(partition, 0)
    positions = walk.take(partition)
    job = EntryReadJob(parts.store._files, parts.store.identity.seed, 1, positions[1:], 2**20)
    job.run()
    parts.store.job_done(job)
    assert job.entries
    Sender._check_batches(job, walk)
    assert job.damaged is not None
    assert job.damaged.reason == "another batch is there"
    assert not job.entries
    other = ReadEntry(1, encode_record(Deleted(0, [(1, 1)], 0)), memoryview(b""), positions[0])
    assert walk.first_wrong([other]) == 0


def test_a_primary_that_finds_damage_when_it_serves_a_replica_leads_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent_entries, "RECENT_BYTES", 1)
    cluster = _served()
    leader = cluster.leader
    away = next(name for name in cluster.machines if name != leader.name)
    cluster.machines[away].crash()
    cluster.settle(1_500)
    for number in range(3):
        send(cluster, b"not there yet %d" % number)
    cluster.settle(200)
    parts = _replication(cluster, leader.name).state.parts
    table = parts.catalogue.partitions[1].table
    position = sorted(place for place, _, _ in table.living_places(set(table.files)))[-2]
    leader.disk.flip_bit(journal_name(position >> 32), (position & OFFSET_MASK) + HEADER_BYTES + 2, 3)
    cluster.machines[away].start()
    cluster.settle(1_500)
    assert (
        cluster.leader is not leader
    )  # it said that it is damaged, and took everything over from its successor
    assert_same(cluster)
    assert received(cluster) == 6


def test_a_stream_that_ends_before_what_came_is_on_disk_is_told_nothing() -> None:
    cluster = _served()
    leader = cluster.leader
    other = next(machine for machine in cluster.machines.values() if machine is not leader)
    leader.request(messages.Send(1), encode_parts([b"on its way"]))
    leader.turn()
    cluster.deliver((leader.name, other.name))
    assert other.node is not None
    assert other.node.replication.follower._unflushed  # it came, and is not on disk yet
    cluster.cut(leader.name, other.name)
    for _ in range(3):
        other.turn()
    assert not other.node.replication.follower._unflushed
    cluster.settle(1_000)
    assert_same(cluster)
    assert received(cluster) == 4
