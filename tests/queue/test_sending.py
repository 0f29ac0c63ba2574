"""Taking a batch in: what is refused, what a message gets from its queue, and who makes room when it is full."""

from __future__ import annotations

import pytest

from penstock.model.batch import UNSET, encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.origin import Origin
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.state import states
from tests.queue.rig import START_MS, Rig, expand


def refused(rig: Rig, count: int, size: int = 10) -> ErrorCode:
    with pytest.raises(PenstockError) as caught:
        rig.send_plain(count, size=size)
    return caught.value.code


def living(rig: Rig) -> list[int]:
    table = rig.partition.table
    return expand(table.runs_in(states.RUNS_LIVING, 1, table.next, 10**6))


# -- what a message may be -----------------------------------------------------------------------------------


def test_a_message_over_the_limit_is_refused_by_itself_and_not_for_its_company() -> None:
    rig = Rig(QueueSettings(max_message_bytes=100))
    assert refused(rig, 1, 101) is ErrorCode.MESSAGE_TOO_LARGE
    assert len(rig.send_plain(50, size=100)) == 50


def test_attributes_count_as_part_of_a_message() -> None:
    rig = Rig(QueueSettings(max_message_bytes=100))
    with pytest.raises(PenstockError):
        rig.send(encode([bytes(60)], attributes=[bytes(41)]))
    rig.send(encode([bytes(60)], attributes=[bytes(40)]))
    assert rig.partition.table.bytes == 100


def test_a_delay_longer_than_the_retention_is_refused() -> None:
    rig = Rig(QueueSettings(retention_ms=1_000))
    with pytest.raises(PenstockError, match="retention"):
        rig.send(encode([b"x", b"y"], delays_ms=[UNSET, 1_001]))
    rig.send(encode([b"x"], delays_ms=[1_000]))


def test_a_bad_value_is_refused_and_nothing_is_stored() -> None:
    rig = Rig()
    with pytest.raises(PenstockError):
        rig.send(encode([b"x", b"y"], priorities=[0, 10]))
    assert rig.partition.table.messages == 0


def test_times_never_fall_when_the_clock_does() -> None:
    rig = Rig()
    assert rig.send(encode([b"x"]), START_MS).sent_ms == START_MS
    assert rig.send(encode([b"x"]), START_MS - 500).sent_ms == START_MS


# -- delay and time to live ----------------------------------------------------------------------------------


def test_a_message_delay_beats_the_queue_delay_zero_included() -> None:
    rig = Rig(QueueSettings(delay_ms=500))
    sent = expand(rig.send(encode([b"a", b"b", b"c"], delays_ms=[0, UNSET, 100])).runs)
    assert rig.take() == [sent[0]]
    rig.upkeep(START_MS + 100)
    assert rig.take(10, START_MS + 100) == [sent[2]]
    rig.upkeep(START_MS + 499)
    assert rig.take(10, START_MS + 499) == []
    rig.upkeep(START_MS + 500)
    assert rig.take(10, START_MS + 500) == [sent[1]]


def test_a_message_time_to_live_beats_the_queue_default_and_zero_means_none() -> None:
    rig = Rig(QueueSettings(default_ttl_ms=200))
    rig.send(encode([b"a", b"b", b"c"], ttls_ms=[0, UNSET, 100]))
    rig.upkeep(START_MS + 100)
    assert living(rig) == [1, 2]
    rig.upkeep(START_MS + 200)
    assert living(rig) == [1]


# -- full ----------------------------------------------------------------------------------------------------


def test_reject_refuses_a_batch_as_a_whole() -> None:
    rig = Rig(QueueSettings(max_messages=5))
    rig.send_plain(3)
    assert refused(rig, 3) is ErrorCode.QUEUE_FULL
    assert living(rig) == [1, 2, 3]
    rig.send_plain(2)
    granted = rig.receive(5)
    assert granted is not None
    assert refused(rig, 1) is ErrorCode.QUEUE_FULL, "what is out still takes room"
    rig.delete(granted.lease, [(1, 2)])
    rig.send_plain(2)


def test_reject_counts_bytes_too() -> None:
    rig = Rig(QueueSettings(max_bytes=100))
    rig.send_plain(9)
    assert refused(rig, 2) is ErrorCode.QUEUE_FULL
    rig.send_plain(1)


def test_drop_oldest_drops_no_more_than_needed() -> None:
    rig = Rig(QueueSettings(max_messages=5, overflow="drop-oldest"))
    rig.send_plain(5)
    rig.send_plain(2)
    assert living(rig) == [3, 4, 5, 6, 7]
    assert rig.partition.totals.dropped == 2


def test_drop_oldest_by_bytes() -> None:
    rig = Rig(QueueSettings(max_bytes=100, overflow="drop-oldest"))
    for size in (10, 60, 30):
        rig.send_plain(1, size=size)
    rig.send_plain(1, size=25)
    assert living(rig) == [3, 4]
    assert rig.partition.table.bytes == 55


def test_drop_oldest_passes_over_what_is_out_or_delayed() -> None:
    rig = Rig(QueueSettings(max_messages=4, overflow="drop-oldest"))
    rig.send_plain(1)
    rig.receive(1)
    rig.send(encode([b"x", b"x", b"x"], delays_ms=[500, 0, 0]))
    rig.send_plain(1)
    assert living(rig) == [1, 2, 4, 5]
    rig.send_plain(2)
    assert living(rig) == [1, 2, 6, 7]
    assert refused(rig, 3) is ErrorCode.QUEUE_FULL, "only two could make room"


def test_a_batch_larger_than_the_queue_is_refused() -> None:
    rig = Rig(QueueSettings(max_messages=5, overflow="drop-oldest"))
    rig.send_plain(5)
    assert refused(rig, 6) is ErrorCode.QUEUE_FULL
    assert living(rig) == [1, 2, 3, 4, 5]


def test_dead_letter_moves_the_oldest_and_what_is_moving_takes_no_room() -> None:
    rig = Rig(QueueSettings(max_bytes=50, overflow="dead-letter", dead_letter_queue="dead"))
    rig.send_plain(5)
    for _ in range(3):
        rig.send_plain(1)
    assert rig.partition.moves == {("dead", "overflow"): [(1, 3)]}
    assert rig.take() == [4, 5, 6, 7, 8]
    rig.write(moving.finish_move(rig.partition, [(1, 3)], START_MS))
    assert rig.partition.totals.dead_lettered == 3


def test_making_room_for_many_small_messages_is_not_quadratic() -> None:
    rig = Rig(QueueSettings(max_bytes=200_000, overflow="drop-oldest"))
    for _ in range(20):
        rig.send_plain(10_000, size=1)
    rig.send_plain(1, size=150_000)
    assert rig.partition.table.bytes == 200_000
    assert rig.partition.totals.dropped == 150_000


def test_moving_in_ignores_limits() -> None:
    """A dead letter must always have somewhere to go."""
    rig = Rig(QueueSettings(max_messages=1))
    rig.send_plain(1)
    origin = Origin(9, "orders", "max-receives", [(1, 2)], 0, [1, 1], START_MS)
    rig.write(moving.arrive(rig.partition, encode([b"x", b"y"]), origin, START_MS))
    assert living(rig) == [1, 2, 3]
