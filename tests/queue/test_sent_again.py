"""A number of a producer names one batch: other messages under it are refused, and what was left out keeps its place."""

from __future__ import annotations

import msgspec
import pytest

from penstock.model.batch import Batch, encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import ELSEWHERE
from penstock.model.records import SettingsChanged
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Admitted, PendingRecord
from penstock.queue.decisions.left_out import LeftOut
from penstock.queue.state import id_claims
from tests.queue.rig import START_MS, Rig, expand

WINDOW_MS = 10_000


def rig() -> Rig:
    return Rig(QueueSettings(ordering="fifo", deduplication_window_ms=WINDOW_MS))


def batch(ids: list[bytes]) -> Batch:
    return encode([b"body of " + one for one in ids], deduplication_ids=ids)


def send(
    rig: Rig, ids: list[bytes], number: int = 1, left_out: LeftOut = (), now_ms: int = START_MS
) -> Admitted:
    return rig.carry_out(sending.admit(rig.partition, batch(ids), 7, number, now_ms, left_out=left_out))


def refused(rig: Rig, ids: list[bytes], left_out: LeftOut = (), now_ms: int = START_MS) -> str:
    before = rig.partition.table.next
    with pytest.raises(PenstockError) as caught:
        send(rig, ids, left_out=left_out, now_ms=now_ms)
    assert caught.value.code is ErrorCode.BAD_REQUEST
    assert rig.partition.table.next == before
    return caught.value.message


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_messages_is_another_batch(count: int) -> None:
    partition = rig()
    partition.send(encode([b"a", b"b"]), START_MS, 7, 1)
    with pytest.raises(PenstockError, match=f"it had 2 messages, and now has {count}") as caught:
        partition.send(encode([b"c"] * count), START_MS, 7, 1)
    assert caught.value.code is ErrorCode.BAD_REQUEST
    assert partition.partition.table.next == 3


def test_other_ids_are_another_batch_for_as_long_as_they_are_remembered() -> None:
    partition = rig()
    first = send(partition, [b"a", b"b"])
    send(partition, [b"c"], number=2)
    assert "deduplication id" in refused(partition, [b"a", b"other"])
    assert "deduplication id" in refused(partition, [b"a", b"c"])
    assert "deduplication id" in refused(partition, [b"b", b"a"])
    assert send(partition, [b"a", b"b"]) == first
    assert send(partition, [b"a", b"b"], now_ms=START_MS + 2 * WINDOW_MS) == first


def test_a_retry_is_the_same_batch_after_its_ids_were_used_again() -> None:
    partition = rig()
    send(partition, [b"old"], number=1)
    second = send(partition, [b"old", b"new"], number=2, now_ms=START_MS + WINDOW_MS - 1)
    assert second.duplicates == [0]
    send(partition, [b"old"], number=3, now_ms=START_MS + WINDOW_MS + 1)  # its window is over
    assert send(partition, [b"old", b"new"], number=2, now_ms=START_MS + WINDOW_MS + 2) == second


@pytest.mark.parametrize("event", ["purge", "shorter", "longer", "restart"])
def test_a_retry_is_the_same_batch_where_its_ids_were_forgotten_early(event: str) -> None:
    partition = rig()
    first = send(partition, [b"a", b"b"])
    later_ms = START_MS + 1
    if event == "restart":
        partition.carry_out(settling.purge(partition.partition, START_MS))
        partition.reload()
    elif event == "purge":
        partition.carry_out(settling.purge(partition.partition, START_MS))
    else:
        window_ms = 1 if event == "shorter" else 100 * WINDOW_MS
        settings = msgspec.structs.replace(partition.partition.settings, deduplication_window_ms=window_ms)
        partition.write([PendingRecord(SettingsChanged(settings, START_MS))])
        later_ms = START_MS + 2 * WINDOW_MS
    assert send(partition, [b"a", b"b"], now_ms=later_ms) == first


@pytest.mark.parametrize("lifted", [False, True])
def test_a_retry_is_the_same_batch_where_a_clock_that_is_ahead_had_its_id_barred(lifted: bool) -> None:
    partition = rig()
    first = send(partition, [b"a", b"b"])
    ahead_ms = START_MS + WINDOW_MS
    for lift in (False, True) if lifted else (False,):
        version = 6 if lift else 5
        found = id_claims.find(partition.partition, [b"b"], [version], ahead_ms, lift=lift)
        assert partition.carry_out(found) == [0]
    assert send(partition, [b"a", b"b"], now_ms=ahead_ms - 1) == first, "the clock of the next primary"


def test_what_an_earlier_version_did_not_count_is_not_missed() -> None:
    partition = rig()
    first = send(partition, [b"b", b"c"])  # `a` was left out, and its partition was not told
    assert send(partition, [b"b", b"c"], left_out=[(0, 99)]) == first
    assert "deduplication id" in refused(partition, [b"b", b"d"], left_out=[(0, 99)])
    assert "it had 2 messages, and now has 3" in refused(partition, [b"a", b"b", b"c"])
    assert partition.partition.table.next == 3


def test_what_was_left_out_is_answered_again_whatever_is_left_out_then() -> None:
    partition = rig()
    elsewhere = 3 << 48 | 17
    first = send(partition, [b"b", b"c"], left_out=[(0, elsewhere)])
    assert expand(first.runs) == [ELSEWHERE | elsewhere, 1, 2]
    assert first.duplicates == [0]
    assert send(partition, [b"b", b"c"], left_out=[(0, elsewhere)]) == first
    assert send(partition, [b"a", b"b", b"c"]) == first
    assert send(partition, [b"a", b"c"], left_out=[(1, 99)]) == first
    assert partition.partition.table.next == 3
    assert "it had 3 messages, and now has 2" in refused(partition, [b"b", b"c"])
    assert "deduplication id" in refused(partition, [b"a", b"c", b"b"])


def test_duplicates_here_and_elsewhere_keep_their_places() -> None:
    partition = rig()
    send(partition, [b"known"], number=1)
    second = send(partition, [b"new", b"known", b"new"], number=2, left_out=[(1, 40), (4, 0)])
    assert expand(second.runs) == [2, ELSEWHERE | 40, 1, 2, ELSEWHERE]
    assert second.duplicates == [1, 2, 3, 4]
    assert send(partition, [b"new", b"x", b"known", b"new", b"y"], number=2) == second
    nothing = send(partition, [b"known", b"new"], number=3, left_out=[(0, 40)])
    assert expand(nothing.runs) == [ELSEWHERE | 40, 1, 2]
    assert nothing.duplicates == [0, 1, 2]
    assert send(partition, [b"known", b"new"], number=3, left_out=[(0, 40)]) == nothing


@pytest.mark.parametrize(
    "left_out", [[(3, 1)], [(-1, 1)], [(1, 1), (0, 1)], [(0, 1), (0, 1)], [(0, -1)], [(0, ELSEWHERE)]]
)
def test_what_was_left_out_has_to_fit(left_out: LeftOut) -> None:
    assert "does not match the batch" in refused(rig(), [b"a"], left_out=left_out)
