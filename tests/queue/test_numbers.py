"""Numbers of a partition in a cluster: what an epoch begins with, gaps of any size, and what images say of them."""

from __future__ import annotations

import base64
import json
import time
import zlib
from pathlib import Path

from penstock.columnar.lifecycle import Change
from penstock.model.batch import encode
from penstock.model.number_gaps import NumberGaps
from penstock.model.records import EpochBegan, LifecycleReported, NumbersSkipped
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.decisions.number_skips import leave_out
from penstock.queue.lifecycle import Lifecycle
from penstock.queue.log import groups as log_groups
from penstock.queue.snapshot import snapshot
from penstock.queue.snapshot.capture import Capture
from penstock.queue.state import id_claims, states
from penstock.queue.state.chunk import CHUNK_MESSAGES
from tests.queue import recount
from tests.queue.rig import START_MS, Rig, expand

WIDE = 1 << 36


def begin(rig: Rig, epoch: int) -> None:
    rig.write([PendingRecord(EpochBegan(epoch, START_MS))])


def skip(rig: Rig, first: int, row: int = 0) -> None:
    rig.write([PendingRecord(NumbersSkipped(first, START_MS, row))])


def test_lease_numbers_generations_and_claims_have_the_epoch_in_them() -> None:
    rig = Rig(QueueSettings(consumption="both"))
    rig.send_plain(5)
    alone = rig.receive(1)
    assert alone is not None
    assert alone.lease == 1, "outside of a cluster nothing has changed"
    for epoch in (1, 2, 9):
        begin(rig, epoch)
        granted = rig.receive(1)
        assert granted is not None
        assert granted.lease == epoch << 40
        joined = rig.carry_out(log_groups.join(rig.partition, "g", f"member {epoch}", 5_000, None, START_MS))
        assert joined.generation == epoch << 40 | rig.partition.index
        claimed = rig.carry_out(id_claims.claim(rig.partition, [b"%d" % epoch], [0], [0], START_MS))
        assert claimed.versions == [epoch << 40 | rig.partition.index]
    rig.reload()
    again = rig.receive(1)
    assert again is not None
    assert again.lease == (9 << 40) + 1
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_leases_that_an_earlier_version_gave_out_in_an_epoch_are_followed() -> None:
    """A replica of this version behind a primary of the version before: what the record says counts."""
    rig = Rig()
    begin(rig, 3)
    rig.partition.leases.next = 18
    rig.send_plain(2)
    granted = rig.receive(1)
    assert granted is not None
    assert (granted.lease, rig.partition.leases.next) == (18, 19)
    begin(rig, 4)
    assert rig.partition.leases.next == 4 << 40


def test_a_gap_costs_neither_memory_nor_time() -> None:
    rig = Rig(QueueSettings(consumption="both", visibility_timeout_ms=1_000))
    rig.send_plain(5_000)
    before = rig.partition.table.memory_bytes()
    started = time.process_time()
    for _ in range(50):
        skip(rig, (rig.partition.table.next + WIDE) & -CHUNK_MESSAGES)
        assert len(rig.send_plain(3)) == 3
        rig.partition.table.runs_in(states.RUNS_LIVING, 1, rig.partition.table.next, 10**9)
    assert time.process_time() - started < 5
    assert rig.partition.table.memory_bytes() < before + 50 * 2_000
    assert rig.partition.log is not None
    assert rig.partition.log.messages == rig.partition.table.messages == 5_150
    recount.check(rig.partition)
    rig.reload()
    taken: list[int] = []
    while granted := rig.receive(100):
        taken += expand(granted.runs)
        rig.delete(granted.lease, sorted(granted.runs))
    assert len(taken) == len(set(taken)) == 5_150
    assert taken == sorted(taken)
    assert len(rig.partition.table.chunks) <= 1, "chunks before gaps go with their last message"
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_gaps_of_more_failovers_than_anybody_needs_are_forgotten() -> None:
    rig = Rig()
    for _ in range(1_200):
        rig.send_plain(1)
        skip(rig, rig.partition.table.next + 10)
    assert len(rig.partition.gaps) == 1_000
    log = Rig(QueueSettings(consumption="log"))
    for _ in range(1_200):
        log.send_plain(1)
        skip(log, log.partition.table.next + 10)
    assert len(log.partition.gaps) == 1_200, "those of what can be read are kept"
    assert log.partition.log is not None
    assert log.partition.log.messages == 1_200


def test_a_log_with_gaps_comes_back_from_a_snapshot() -> None:
    rig = Rig(QueueSettings(consumption="log"))
    rig.send_plain(3)
    skip(rig, WIDE)
    rig.send_plain(3)
    loaded = snapshot.load(snapshot.dump(rig.partition))
    assert loaded.log is not None
    assert loaded.log.gaps is loaded.gaps
    assert loaded.gaps.pairs() == [(4, WIDE)]
    assert loaded.log.messages == 6


def test_numbers_are_left_out_while_the_state_is_captured() -> None:
    """What is captured is the state of before, also of the chunk that grows or goes by it."""
    for first, kept in ((20, True), (WIDE, True), (WIDE, False)):
        rig = Rig(QueueSettings(consumption="both"))
        rig.send_plain(3)
        granted = rig.receive(3)
        assert granted is not None
        if not kept:
            rig.delete(granted.lease, granted.runs)
        before = snapshot.dump(rig.partition)
        capture = Capture(rig.partition)
        skip(rig, first)
        rig.send_plain(2)
        while not capture.is_done:
            capture.step(1)
        captured = snapshot.load(b"".join(capture.buffers))
        assert snapshot.dump(captured) == before
        recount.check(captured)


OLD = """
eNrtmM1u00AQx3djV4nUSw49cKMSB068A3d4B7Oxx+0if7G7TpobjxA7ULVXBCEhVSSQENcVNUfnCSrEkVDEK4RZJzR5BrQ/ecezs+OZ
//o4N+Q+bU9SEYCQ38m9aePx5GTeA6keQRimQk2kYnEmJxJEH8RswJMgHXixDD7F7MzLEx+EYjxRQxNbDE4h2QUnAsJcwtxPE5nHmeJp
8raXqtMrAebY6w0VSL3gQQQenGVcmCL6Q8aE4iZZ0qmALOI+k85865n4OyaHiT+PsQQ+xtdXRk0MUrITLDkzu031j3sHm9CSdAmZpnib
MEoHqPE5+Opzn0ve4xHHiygeQ5or1FL/ema0QmK64n55dJmRaQARM0rJIoCQ5ZHylIqM8i8BBPmdSu/uXy2JO/7RKBTgA+8bWQGwwItA
KRDeixxy0LOIh+AP/Qiua+dnu3ZWbuvSIVuKC1KuK5ccH3fx3TUhZ7sOcFUtSqrOY/QornL9DTMoJRaLxWKxWCwWi8VisVj+b7R+WYxp
7dwWZf3nSVHSVlm3yKgxYzRV56m7yaw6/yYFo+LVQe2s1sU5pQ46I8wfGc7dXdJuzlC5Dxp72ERX22FFcfFeADNDJez+u128iaGoH3bx
C63LktLSdV9ff3VIeUOOTBNspRv2506Hm5DGHFR069AWxVvofUZ/Ad4cFIc=
"""
"""An image of the version before: an `async` partition with three messages, two of them out under lease 1, and a group at
generation 7, at record 7 of epoch 4."""


def test_an_image_of_the_version_before_goes_on() -> None:
    partition = snapshot.load(zlib.decompress(base64.b64decode(OLD)))
    assert (partition.index, partition.epochs.last, partition.leases.next, partition.table.next) == (
        7,
        4,
        2,
        4,
    )
    assert partition.log is not None
    assert (partition.log.messages, len(partition.gaps)) == (3, 0)
    recount.check(partition)
    partition.apply(EpochBegan(5, START_MS))
    partition.apply(NumbersSkipped(WIDE, START_MS))
    assert partition.leases.next == 5 << 40
    assert [lease.runs() for _, lease in partition.leases] == [[(1, 2)]], "what is out stays out"
    group = partition.readers.get("readers")
    assert group is not None
    assert log_groups.check_member(partition, "readers", "me", 7) is group
    assert partition.log.batches(4, 10, 1_000, 10) == []
    assert snapshot.load(snapshot.dump(partition)).gaps.pairs() == [(4, WIDE)]


def test_a_state_of_version_2_has_its_gaps() -> None:
    """One document with gaps in the numbers of messages and of rows, as it was written before there were pages."""
    states_of_2 = json.loads((Path(__file__).parent / "states_of_version_2.json").read_text())
    partition = snapshot.load(zlib.decompress(base64.b64decode(states_of_2["log with gaps"])))
    rig = Rig(QueueSettings(consumption="log", lifecycle=True))
    rig.send_plain(3)
    skip(rig, WIDE, 7 << 36)
    rig.send_plain(2)
    assert partition.gaps.pairs() == [(4, WIDE)]
    assert partition.lifecycle is not None
    assert partition.lifecycle.gaps.pairs() == lifecycle(rig).gaps.pairs()
    assert partition.lifecycle.gaps
    assert snapshot.dump(partition) == snapshot.dump(rig.partition)


# -- rows ----------------------------------------------------------------------------------------------------


def lifecycle(rig: Rig) -> Lifecycle:
    assert rig.partition.lifecycle is not None
    return rig.partition.lifecycle


def test_rows_about_a_log_name_no_number_that_no_message_has() -> None:
    rig = Rig(QueueSettings(consumption="log", lifecycle=True))
    rig.send_plain(3)
    skip(rig, WIDE)
    rig.send_plain(2)
    assert rig.carry_out(settling.purge(rig.partition, START_MS)) == 5
    purged = [(row.first, row.count) for row in lifecycle(rig).waiting if row.change == Change.PURGED]
    assert purged == [(1, 3), (WIDE, 2)]
    assert rig.partition.totals.purged == 5


def test_rows_before_and_after_skipped_numbers_are_reported_apart() -> None:
    rig = Rig(QueueSettings(lifecycle=True))
    for _ in range(5):
        rig.send_plain(1)
    rig.write([PendingRecord(LifecycleReported(2, START_MS))])
    skip(rig, 100, 7 << 36)
    rig.send_plain(1)
    first = 7 << 36
    for _ in range(2):  # as it is, and after a restart
        rows = lifecycle(rig).rows(10**9, 100, 10**6)
        assert (lifecycle(rig).first, [row.first for row in rows]) == (3, [3, 4, 5])
        assert len(lifecycle(rig).waiting) == 5
        rig.reload()
    rig.write([PendingRecord(LifecycleReported(4, START_MS))])
    assert lifecycle(rig).first == 5
    rig.write([PendingRecord(LifecycleReported(5, START_MS))])
    rows = lifecycle(rig).rows(10**9, 100, 10**6)
    assert (lifecycle(rig).first, [row.change for row in rows]) == (first, [Change.RENUMBERED, Change.SENT])
    assert rows[0].first == 6, "the first number that no row has"
    rig.write([PendingRecord(LifecycleReported(first + 1, START_MS))])
    rig.send(encode([b"last"]))
    assert (lifecycle(rig).first, len(lifecycle(rig).waiting)) == (first + 2, 1)
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_numbers_that_would_come_next_anyway_leave_nothing_out() -> None:
    rig = Rig()
    rig.send(encode([b"one"]))
    table, gaps = rig.partition.table, NumberGaps()
    leave_out(table.next, table, None, gaps)
    assert table.next == 2
    assert len(table.chunks[0].states) == 2
