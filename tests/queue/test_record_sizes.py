"""No record grows with the queue: what is about many messages is several records, each a complete step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec
import pytest

from penstock.model import limits, records
from penstock.model.batch import encode
from penstock.model.origin import Lateness, Origin
from penstock.model.records import Record, encode_record
from penstock.model.runs import Runs, normalized
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.decisions.room import ROOM_RECORDS
from penstock.queue.state import states
from penstock.queue.state.id_claims import IDS_AT_ONCE
from penstock.simulation.partition_state import inconsistencies
from penstock.storage.entry import HEAD_BYTES_MAX
from tests.queue.rig import START_MS, Rig

MOST = 3
"""Runs in a record, here."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RUNS_PER_RECORD", MOST)


def scattered(settings: QueueSettings, messages: int = 20) -> Rig:
    """Every other message is there."""
    rig = Rig(msgspec.structs.replace(settings, max_messages=None))
    rig.send_plain(messages)
    granted = rig.receive(messages)
    assert granted is not None
    gone = [(sequence, 1) for sequence in range(1, messages + 1, 2)]
    kept = [(sequence, 1) for sequence in range(2, messages + 1, 2)]
    rig.delete(granted.lease, gone)
    rig.release(granted.lease, kept)
    rig.write([PendingRecord(records.SettingsChanged(settings, START_MS))])
    return rig


def runs_of_each(written: Sequence[PendingRecord]) -> list[int]:
    return [len(getattr(row.record, "runs", [])) for row in written]


def living(rig: Rig) -> Runs:
    return rig.partition.table.runs_in(states.RUNS_LIVING, 1, rig.partition.table.next, 10_000)


OVERFLOWS = [
    QueueSettings(max_messages=2, overflow="drop-oldest"),
    QueueSettings(max_messages=2, overflow="dead-letter", dead_letter_queue="dead"),
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("settings", OVERFLOWS, ids=["drop-oldest", "dead-letter"])
def test_overflow_makes_room_in_records_of_a_bounded_size(settings: QueueSettings) -> None:
    rig = scattered(settings)
    decision = sending.admit(rig.partition, encode([b"one more"]), 0, 0, START_MS)
    assert runs_of_each(decision.records) == [0, 3, 3, 3]
    rig.carry_out(decision)
    waiting = rig.partition.table.among(states.RUNS_IN[states.READY], living(rig))
    assert waiting == [(20, 2)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("settings", OVERFLOWS, ids=["drop-oldest", "dead-letter"])
@pytest.mark.parametrize("written", range(5))
def test_a_crash_between_two_of_the_records_is_harmless(settings: QueueSettings, written: int) -> None:
    """What is there is consistent, nothing that is newer went, and the next send makes the rest of the room."""
    rig = scattered(settings)
    rig.write(sending.admit(rig.partition, encode([b"one more"]), 0, 0, START_MS).records[:written])
    rig.reload()
    assert not list(inconsistencies(rig.partition))
    pieces = max(written - 1, 0)  # the batch is stored first
    left = [(sequence, 1) for sequence in range(2 + 2 * MOST * pieces, 21, 2)]
    stored = [(21, 1)] if written else []
    assert rig.partition.table.among(states.RUNS_IN[states.READY], living(rig)) == normalized(
        [*left, *stored]
    )
    rig.send(encode([b"one more"]))
    newest = [(21, 2)] if written else [(20, 2)]
    assert rig.partition.table.among(states.RUNS_IN[states.READY], living(rig)) == newest
    assert not list(inconsistencies(rig.partition))


def test_several_sends_make_room_where_that_takes_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """All records of a send go to the journal together, and it has not room for any number of them."""
    monkeypatch.setattr(limits, "RUNS_PER_RECORD", 1)
    rig = scattered(OVERFLOWS[0])
    decision = sending.admit(rig.partition, encode([b"one more"]), 0, 0, START_MS)
    assert runs_of_each(decision.records) == [0] + [1] * ROOM_RECORDS
    rig.carry_out(decision)
    for _ in range(3):
        rig.send(encode([b"and more"]))
    assert rig.partition.table.messages == 2


@pytest.mark.usefixtures("small")
def test_moves_end_in_records_of_a_bounded_size() -> None:
    rig = scattered(QueueSettings())
    everything = [(1, 20)]
    rig.carry_out(started := moving.start_move(rig.partition, everything, "other", START_MS))
    assert runs_of_each(started.records) == [3, 3, 3, 1]
    assert started.reply == 10
    abandoned = moving.abandon_move(rig.partition, everything, START_MS)
    assert runs_of_each(abandoned) == [3, 3, 3, 1]
    rig.write(abandoned)
    rig.carry_out(moving.start_move(rig.partition, everything, "other", START_MS))
    finished = moving.finish_move(rig.partition, everything, START_MS)
    assert runs_of_each(finished) == [3, 3, 3, 1]
    rig.write(finished)
    assert not living(rig)
    assert not list(inconsistencies(rig.partition))


@pytest.mark.usefixtures("small")
def test_origins_are_forgotten_in_records_of_a_bounded_size() -> None:
    rig = Rig()
    for sequence in range(1, 20, 2):
        origin = Origin(9, "orders", "max-receives", [(sequence, 1)], 0, [1], START_MS)
        rig.write(moving.arrive(rig.partition, encode([b"x"]), origin, START_MS))
    forgotten = moving.forget_origins(rig.partition, 9, [(1, 20)], START_MS)
    assert runs_of_each(forgotten) == [3, 3, 3, 1]
    rig.write(forgotten)
    assert not list(rig.partition.origins)


@pytest.mark.usefixtures("small")
def test_times_to_live_and_delays_end_in_records_of_a_bounded_size() -> None:
    rig = Rig()
    rig.send(encode([b"x"] * 20, delays_ms=[100, 200] * 10, ttls_ms=[500, 900] * 10))
    at_ms = START_MS + 150
    while matured := upkeep.end_delays(rig.partition, at_ms):
        assert max(runs_of_each(matured)) <= MOST
        rig.write(matured)
    assert rig.partition.table.counts[states.READY] == 10
    at_ms = START_MS + 600
    while expired := upkeep.expire(rig.partition, at_ms):
        assert max(runs_of_each(expired)) <= MOST
        rig.write(expired)
    assert rig.partition.totals.expired == 10


# -- the largest of each kind --------------------------------------------------------------------------------------

BIG = 2**63
AT_MS = 2**42
NAME = "n" * limits.QUEUE_NAME_CHARACTERS + "@" + "9" * 20


def widest(runs: int) -> Runs:
    return [(BIG + 2 * number, 2**32 - 1) for number in range(runs)]  # more than any memory has


ANY = widest(limits.RUNS_PER_RECORD)
RECEIVED = widest(limits.RECEIVE_MESSAGES)
SENT = widest(limits.BATCH_MESSAGES)
IDS = [b"i" * limits.DEDUPLICATION_ID_BYTES] * IDS_AT_ONCE
WORD = "\N{CJK UNIFIED IDEOGRAPH-4E00}"
SETTINGS = QueueSettings(dead_letter_queue=NAME)
LATENESS = Lateness(BIG, BIG, "9" * 40)
ORIGIN = Origin(
    BIG, NAME, "queue-deleted", SENT, AT_MS, [2**31] * limits.BATCH_MESSAGES, AT_MS, SENT, LATENESS
)
MEMBERS = [WORD * limits.LOG_GROUP_NAME_CHARACTERS] * limits.LOG_GROUP_MEMBERS
LARGEST: list[Record] = [
    records.Sent(BIG, 1, AT_MS, AT_MS, AT_MS, BIG, BIG, ORIGIN, SENT, BIG, BIG, BIG, 1),
    records.Leased(BIG, RECEIVED, AT_MS, AT_MS, b"a" * limits.ATTEMPT_ID_BYTES, WORD * 1_000),
    records.Deleted(BIG, RECEIVED, AT_MS),
    records.Released(BIG, RECEIVED, "lease-ended", AT_MS, AT_MS, WORD * limits.RELEASE_ERROR_CHARACTERS),
    records.Extended(BIG, RECEIVED, AT_MS, AT_MS),
    records.Resumed(BIG, RECEIVED, AT_MS, AT_MS),
    records.Matured(ANY, AT_MS),
    records.Expired(ANY, "retention", AT_MS),
    records.Dropped(ANY, AT_MS),
    records.MoveStarted(ANY, NAME, "queue-deleted", AT_MS, LATENESS),
    records.SpentMoved(BIG, RECEIVED, "lease-ended", AT_MS, NAME, WORD * limits.RELEASE_ERROR_CHARACTERS),
    records.TimersEnded("delay", RECEIVED, AT_MS, BIG, AT_MS, NAME),
    records.MoveFinished(ANY, AT_MS),
    records.MoveAbandoned(ANY, AT_MS),
    records.OriginsForgotten(BIG, ANY, AT_MS),
    records.Purged(BIG, AT_MS),
    records.SettingsChanged(SETTINGS, AT_MS),
    records.Sorted(BIG, AT_MS),
    records.Closed(BIG, AT_MS),
    records.LogCut(BIG, "bytes", AT_MS),
    records.OffsetCommitted(MEMBERS[0], BIG, AT_MS),
    records.GroupChanged(MEMBERS[0], BIG, MEMBERS, AT_MS, [AT_MS] * len(MEMBERS), 1_023, 1_024),
    records.GroupRemoved(MEMBERS[0], AT_MS),
    records.MessagesLost(BIG, AT_MS),
    records.IdsClaimed(IDS, [limits.PARTITIONS_PER_QUEUE] * len(IDS), BIG, AT_MS, AT_MS),
    records.IdsBarred(IDS, [BIG] * len(IDS), AT_MS, AT_MS),
    records.EpochBegan(BIG, AT_MS),
    records.NumbersSkipped(BIG, AT_MS, BIG),
    records.DuplicatesSent(BIG, BIG, SENT, AT_MS),
    records.LifecycleReported(BIG, AT_MS),
    records.LifecycleEnded(AT_MS),
    records.QueueCreated(BIG, NAME, SETTINGS, AT_MS),
    records.QueueDeleted(BIG, AT_MS),
    records.QueueRemoved(BIG, AT_MS),
]


def test_every_kind_of_record_is_here() -> None:
    assert {type(record) for record in LARGEST} == set(get_args(Record))


@pytest.mark.parametrize("record", LARGEST, ids=lambda record: type(record).__name__)
def test_the_largest_record_of_each_kind_fits_an_entry(record: Record) -> None:
    assert len(encode_record(record)) <= HEAD_BYTES_MAX
