"""Taking a batch in: what is refused, what a message gets from its queue, and who makes room when it is full."""

from __future__ import annotations

import pytest

from penstock.model.batch import UNSET, encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.origin import Origin
from penstock.model.records import Dropped, SettingsChanged
from penstock.model.settings import Ordering, QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import room
from penstock.queue.decisions import send as sending
from penstock.queue.decisions.decision import PendingRecord
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


# -- too many groups -----------------------------------------------------------------------------------------

ORDERS = pytest.mark.parametrize("ordering", ["best-effort", "fifo"])


def crowd(rig: Rig, *groups: bytes) -> PenstockError:
    """The refusal of a send of one message to each group."""
    with pytest.raises(PenstockError) as caught:
        rig.send_groups(groups)
    return caught.value


@ORDERS
def test_a_send_that_begins_a_group_too_many_is_refused(ordering: Ordering) -> None:
    rig = Rig(QueueSettings(ordering=ordering, max_groups=2))
    rig.send_groups([b"a", b"b"])
    error = crowd(rig, b"a", b"c")
    assert error.code is ErrorCode.QUEUE_FULL
    said = "'orders' is full: groups with messages: 2, added by the send: 1 (max_groups 2, overflow reject)"
    assert said in str(error)
    assert living(rig) == [1, 2]
    rig.send_groups([b"b", b"a", b"b"])
    rig.send_plain(3)
    rig.send_groups([b"", b"a"])


@ORDERS
def test_a_group_without_messages_makes_room_for_another(ordering: Ordering) -> None:
    rig = Rig(QueueSettings(ordering=ordering, max_groups=1))
    rig.send_groups([b"a"])
    granted = rig.receive(1)
    assert granted is not None
    assert crowd(rig, b"b").code is ErrorCode.QUEUE_FULL, "what is out still takes room"
    rig.delete(granted.lease, granted.runs)
    rig.send_groups([b"b"])
    rig.reload()
    assert crowd(rig, b"a").code is ErrorCode.QUEUE_FULL


@ORDERS
@pytest.mark.parametrize("few", [0, room.FEW_GROUPS])
def test_drop_oldest_drops_whole_groups(
    ordering: Ordering, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "FEW_GROUPS", few)
    rig = Rig(QueueSettings(ordering=ordering, max_groups=3, overflow="drop-oldest"))
    rig.send_plain(1)
    rig.send_groups([b"a", b"b", b"a", b"c", b"a"])
    rig.send_groups([b"d", b"b"])
    assert living(rig) == [1, 3, 5, 7, 8], (
        "not the messages of b, to which the batch belongs, nor those of no group"
    )
    assert rig.partition.totals.dropped == 3
    rig.send_groups([b"e", b"f"])
    assert living(rig) == [1, 7, 9, 10], "b and c, the oldest"
    rig.send_groups([b"d", b"g"])
    assert living(rig) == [1, 7, 10, 11, 12], "not d, which is the oldest: the batch belongs to it"
    assert crowd(rig, b"1", b"2", b"3", b"4").code is ErrorCode.QUEUE_FULL
    assert living(rig) == [1, 7, 10, 11, 12]


def test_a_group_that_is_out_or_delayed_is_not_dropped() -> None:
    rig = Rig(QueueSettings(max_groups=3, overflow="drop-oldest"))
    rig.send_groups([b"a"])
    rig.receive(1)
    rig.send(encode([b"x", b"x"], groups=[b"a", b"b"]))
    rig.send(encode([b"x"], groups=[b"b"], delays_ms=[500]))
    rig.send_groups([b"c"])
    rig.send_groups([b"d"])
    assert living(rig) == [1, 2, 3, 4, 6]
    assert crowd(rig, b"e", b"f").code is ErrorCode.QUEUE_FULL, "only one could make room"


@ORDERS
def test_dead_letter_moves_whole_groups_and_one_that_is_moving_takes_no_room(ordering: Ordering) -> None:
    settings = {"overflow": "dead-letter", "dead_letter_queue": "dead"}
    rig = Rig(QueueSettings(ordering=ordering, max_groups=2, **settings))  # type: ignore[arg-type]  # named above
    rig.send_groups([b"a", b"b", b"a"])
    rig.send_groups([b"c"])
    assert rig.partition.moves == {("dead", "overflow"): [(1, 1), (3, 1)]}
    rig.send_groups([b"d"])
    assert rig.partition.moves == {("dead", "overflow"): [(1, 3)]}
    rig.send_groups([b"a"])
    assert rig.partition.moves == {("dead", "overflow"): [(1, 4)]}
    rig.write(moving.finish_move(rig.partition, [(1, 4)], START_MS))
    assert living(rig) == [5, 6]


@ORDERS
@pytest.mark.parametrize("few", [0, room.FEW_GROUPS])
def test_all_messages_of_a_group_are_found_among_many(
    ordering: Ordering, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "FEW_GROUPS", few)
    rig = Rig(QueueSettings(ordering=ordering, max_groups=600, overflow="drop-oldest"))
    names = [b"%d" % (index % 600) for index in range(6_000)]
    group_of = dict(zip(rig.send_groups(names), names, strict=True))
    granted = rig.receive(700)
    assert granted is not None
    rig.delete(granted.lease, granted.runs)
    for number in range(600, 900):
        name, there = b"%d" % number, living(rig)
        decision = sending.admit(rig.partition, encode([b"x"], groups=[name]), 0, 0, START_MS)
        leaving = [
            one
            for record, _ in decision.records
            if isinstance(record, Dropped)
            for one in expand(record.runs)
        ]
        is_full = len({group_of[one] for one in there}) == 600
        assert leaving == [one for one in there if is_full and group_of[one] == group_of[there[0]]]
        (sent,) = expand(rig.carry_out(decision).runs)
        group_of[sent] = name


def test_messages_without_a_group_are_passed_over() -> None:
    rig = Rig(QueueSettings(max_groups=1, overflow="drop-oldest"))
    rig.send_plain(5_000)
    rig.send_groups([b"a"])
    rig.send_groups([b"b"])
    assert living(rig) == [*range(1, 5_001), 5_002]


def test_what_a_group_has_left_goes_when_others_of_it_are_moving() -> None:
    rig = Rig(QueueSettings(max_groups=1, overflow="dead-letter", dead_letter_queue="dead"))
    rig.send_groups([b"a"])
    rig.send_groups([b"b"])
    rig.send_groups([b"a"])
    rig.send_groups([b"c"])
    assert rig.partition.moves == {("dead", "overflow"): [(1, 3)]}


def test_a_limit_of_groups_that_was_lowered_refuses_only_what_begins_one() -> None:
    rig = Rig()
    rig.send_groups([b"a", b"b", b"c"])
    rig.write([PendingRecord(SettingsChanged(QueueSettings(max_groups=1), START_MS))])
    rig.send_groups([b"a", b"c"])
    assert crowd(rig, b"d").code is ErrorCode.QUEUE_FULL
    rig.write([PendingRecord(SettingsChanged(QueueSettings(max_groups=1, overflow="drop-oldest"), START_MS))])
    rig.send_groups([b"d"])
    assert living(rig) == [6]


def test_room_for_groups_counts_as_room_for_messages() -> None:
    rig = Rig(QueueSettings(max_groups=2, max_messages=5, overflow="drop-oldest"))
    rig.send_plain(1)
    rig.send_groups([b"a", b"b", b"a", b"b"])
    rig.send_groups([b"c", b"c"])
    assert living(rig) == [1, 3, 5, 6, 7]
    rig.send_groups([b"d", b"c", b"c", b"c"])
    assert living(rig) == [7, 8, 9, 10, 11], "b went for d, then the oldest of the others"


def test_every_duplicate_of_a_full_queue_is_answered() -> None:
    rig = Rig(QueueSettings(max_groups=1))
    rig.send_groups([b"a"])
    batch = encode([b"x"], groups=[b"a"], deduplication_ids=[b"one"])
    rig.send(batch)
    assert rig.send(encode([b"x"], groups=[b"b"], deduplication_ids=[b"one"])).duplicates == [0]
