"""The same thing sent twice is stored once: ids, producers' batches, messages that moved in."""

from __future__ import annotations

import pytest

from penstock.model import limits
from penstock.model.batch import encode
from penstock.model.errors import PenstockError
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Admitted
from penstock.queue.state.deduplication import DeduplicationWindow, OriginTable
from tests.queue.rig import START_MS, Rig, expand

WINDOW_MS = 1_000


def rig_with_window() -> Rig:
    return Rig(QueueSettings(deduplication_window_ms=WINDOW_MS))


def send(
    rig: Rig, *identifiers: bytes, now_ms: int = START_MS, producer: int = 0, number: int = 0
) -> Admitted:
    batch = encode([b"%d" % i for i in range(len(identifiers))], deduplication_ids=identifiers)
    return rig.send(batch, now_ms, producer, number)


# -- deduplication ids ---------------------------------------------------------------------------------------


def test_a_duplicate_is_answered_with_the_original_and_stores_nothing() -> None:
    rig = rig_with_window()
    first = send(rig, b"a")
    again = send(rig, b"a", now_ms=START_MS + WINDOW_MS - 1)
    assert again.runs == first.runs
    assert again.duplicates == [0]
    assert rig.partition.table.messages == 1


def test_the_window_counts_from_the_first_send_and_then_the_id_is_free() -> None:
    rig = rig_with_window()
    send(rig, b"a")
    send(rig, b"a", now_ms=START_MS + 900)
    later = send(rig, b"a", now_ms=START_MS + WINDOW_MS)
    assert later.duplicates == []
    assert later.runs == [(2, 1)]
    assert send(rig, b"a", now_ms=START_MS + WINDOW_MS + 1).runs == [(2, 1)]


def test_the_id_is_taken_also_after_the_message_was_deleted() -> None:
    rig = rig_with_window()
    send(rig, b"a")
    granted = rig.receive()
    assert granted is not None
    rig.delete(granted.lease, granted.runs)
    assert send(rig, b"a").duplicates == [0]
    assert rig.take() == []


def test_duplicates_inside_a_batch_point_at_the_first_of_them() -> None:
    rig = rig_with_window()
    rig.send_plain(5)
    answer = send(rig, b"a", b"b", b"a", b"", b"b", b"a")
    assert expand(answer.runs) == [6, 7, 6, 8, 7, 6]
    assert answer.duplicates == [2, 4, 5]
    granted = rig.receive(10)
    assert granted is not None
    assert rig.bodies(granted.runs)[5:] == [b"0", b"1", b"3"]


def test_a_mixed_batch_stores_only_what_is_new() -> None:
    rig = rig_with_window()
    send(rig, b"a", b"b")
    answer = send(rig, b"b", b"c", b"a", b"d")
    assert expand(answer.runs) == [2, 3, 1, 4]
    assert answer.duplicates == [0, 2]
    granted = rig.receive(10)
    assert granted is not None
    assert rig.bodies(granted.runs) == [b"0", b"1", b"1", b"3"]


def test_messages_without_an_id_are_never_duplicates() -> None:
    rig = rig_with_window()
    assert send(rig, b"", b"", b"a").duplicates == []
    assert send(rig, b"", b"").duplicates == []


def test_a_purge_frees_the_ids() -> None:
    rig = rig_with_window()
    send(rig, b"a")
    rig.carry_out(settling.purge(rig.partition, START_MS))
    assert send(rig, b"a").duplicates == []


def test_a_shorter_window_holds_for_what_is_sent_after() -> None:
    window = DeduplicationWindow()
    window.add(b"long", 1, 1_000)
    window.add(b"short", 2, 500)
    window.forget(600, 1)
    assert window.original(b"short", 600) is None
    assert window.original(b"long", 600) == 1
    window.forget(1_000, 1)
    assert len(window.rows) == 0


def test_forgetting_stays_cheap_when_ids_come_and_go() -> None:
    """The first living key of a plain dict is found behind every deleted one, which costs 30 times as much."""
    window = DeduplicationWindow()
    for number in range(200_000):
        window.add(b"%d" % number, number, number + 50_000)
        window.forget(number, 1)
    assert len(window.rows) == 50_000


# -- producers -----------------------------------------------------------------------------------------------


def test_a_batch_sent_again_is_answered_again() -> None:
    rig = Rig()
    first = rig.send(encode([b"x", b"y"]), producer=7, number=1)
    assert rig.send(encode([b"x", b"y"]), START_MS + 9, producer=7, number=1) == first
    assert rig.partition.table.messages == 2
    assert rig.send(encode([b"x"]), producer=8, number=1).runs == [(3, 1)], "numbers are a producer's own"
    assert rig.send(encode([b"x"]), producer=7, number=2).runs == [(4, 1)]


def test_a_retry_of_a_mixed_batch_names_the_same_duplicates() -> None:
    rig = rig_with_window()
    send(rig, b"a")
    first = send(rig, b"b", b"a", b"c", b"b", producer=7, number=1)
    again = send(rig, b"b", b"a", b"c", b"b", producer=7, number=1, now_ms=START_MS + 10**6)
    assert again == first
    assert expand(first.runs) == [2, 1, 3, 2]


def test_a_retry_is_known_after_a_restart() -> None:
    rig = rig_with_window()
    first = send(rig, b"a", b"a", producer=7, number=1)
    rig.reload()
    assert send(rig, b"a", b"a", producer=7, number=1, now_ms=START_MS + 10**6) == first
    assert send(rig, b"a").duplicates == [0]


def test_numbers_may_start_at_zero() -> None:
    rig = Rig()
    assert rig.send(encode([b"x"]), producer=7, number=0).runs == [(1, 1)]
    assert rig.send(encode([b"x"]), producer=7, number=0).runs == [(1, 1)]


# -- messages that moved in ----------------------------------------------------------------------------------


def test_origins_know_what_arrived_until_told_to_forget() -> None:
    table = OriginTable()
    table.add(1, [(10, 5)])
    table.add(1, [(15, 5), (30, 1)])
    table.add(2, [(10, 1)])
    assert table.arrived(1, [(18, 5), (8, 4)]) == [(10, 2), (18, 2)]
    assert table.arrived(3, [(10, 1)]) == []
    table.forget(1, [(12, 100)])
    assert dict(table) == {1: [(10, 2)], 2: [(10, 1)]}
    table.forget(1, [(10, 2)])
    table.forget(1, [(10, 2)])
    assert dict(table) == {2: [(10, 1)]}


def test_a_batch_of_duplicates_is_not_stored_when_it_comes_again_after_the_window() -> None:
    """Its answer was lost. What its producer sent after it is stored by then, and it would come behind that."""
    rig = rig_with_window()
    send(rig, b"a", producer=7, number=1)
    answer = send(rig, b"a", b"a", now_ms=START_MS + 500, producer=7, number=2)
    send(rig, b"b", now_ms=START_MS + 600, producer=7, number=3)
    rig.reload()
    again = send(rig, b"a", b"a", now_ms=START_MS + 2 * WINDOW_MS, producer=7, number=2)
    assert (again.runs, again.duplicates) == (answer.runs, answer.duplicates)
    assert rig.partition.table.messages == 2
    assert send(rig, b"a", now_ms=START_MS + 2 * WINDOW_MS, producer=7, number=4).runs == [(3, 1)]


def test_duplicates_of_nobody_in_particular_are_not_written() -> None:
    rig = rig_with_window()
    send(rig, b"a")
    before = rig.partition.index
    assert send(rig, b"a").duplicates == [0]
    assert rig.partition.index == before


def test_batches_of_duplicates_are_answered_by_their_ids_where_too_many_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PRODUCER_DUPLICATES_BYTES", 1)
    rig = rig_with_window()
    send(rig, b"a", b"b", producer=7, number=1)
    answers = [send(rig, b"b", b"a", b"b", producer=7, number=number) for number in (2, 3)]
    again = [send(rig, b"b", b"a", b"b", producer=7, number=number) for number in (2, 3)]
    assert [(one.runs, one.duplicates) for one in again] == [(one.runs, one.duplicates) for one in answers]
    assert expand(again[0].runs) == [2, 1, 2]
    send(rig, b"c", now_ms=START_MS + 2 * WINDOW_MS, producer=7, number=4)
    with pytest.raises(PenstockError, match="cannot tell whether it was stored"):
        send(rig, b"b", b"a", b"b", now_ms=START_MS + 2 * WINDOW_MS, producer=7, number=2)
    assert rig.partition.table.messages == 3
