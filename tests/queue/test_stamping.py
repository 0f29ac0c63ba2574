"""Stamps in the partition: closed times, what is out, snapshots, and late messages of best-effort queues."""

from __future__ import annotations

import pytest

from penstock.model import limits
from penstock.model.batch import STAMPS, Batch, encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.origin import Origin
from penstock.model.records import Closed, Sent
from penstock.model.settings import QueueSettings
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import Admitted, PendingRecord
from penstock.queue.decisions.stamping import ProducerStamps
from penstock.queue.snapshot import snapshot
from tests.queue.rig import START_MS, Rig, expand

NOW_US = START_MS * 1_000


def send(
    rig: Rig, batch: Batch, said: ProducerStamps | None = None, now_ms: int = START_MS, error_us: int = 0
) -> Admitted:
    """Sends by a clock that is off by so much at most."""
    decision = sending.admit(
        rig.partition,
        batch,
        0,
        0,
        now_ms,
        said=said or ProducerStamps(),
        now=around(now_ms * 1_000, error_us),
    )
    return rig.carry_out(decision)


def let_out(rig: Rig, now_ms: int) -> None:
    """What may leave the window leaves it."""

    def clock() -> ClockInterval:
        return around(now_ms * 1_000, 0)

    rig.write(upkeep.let_out(rig.partition, now_ms, clock))


def stamped(process: int, time_us: int, counter: int = 0) -> ProducerStamps:
    """A producer's stamp."""
    return ProducerStamps(process, counter, time_us)


def server_stamped(**settings: object) -> Rig:
    """A queue that the server stamps."""
    return Rig(QueueSettings(ordering="clock", **settings))  # type: ignore[arg-type]  # as the caller names them


def producer_stamped(**settings: object) -> Rig:
    """A queue ordered by its producers' stamps."""
    return Rig(QueueSettings(ordering="clock", stamps="producer", **settings))  # type: ignore[arg-type]  # as the caller names them


def test_the_server_stamps_with_the_latest_that_it_may_be() -> None:
    rig = server_stamped()
    assert send(rig, encode([b"a"]), error_us=700).stamp_us == NOW_US + 700
    assert send(rig, encode([b"b"])).stamp_us == NOW_US + 701


def test_where_the_server_stamps_nothing_is_left_of_its_producers_stamps() -> None:
    rig = server_stamped()
    batch = encode([b"a", b"b"], groups=[b"g", b"h"], attributes=[b"x", b""], stamps_us=[5, 6])
    decision = sending.admit(rig.partition, batch, 0, 0, START_MS, said=stamped(1, 0), now=around(NOW_US, 0))
    ((record, stored),) = decision.records
    assert isinstance(record, Sent)
    assert (record.stamp_us, record.process) == (NOW_US, 0)
    assert stored is not None
    assert stored.data == encode([b"a", b"b"], groups=[b"g", b"h"], attributes=[b"x", b""]).data
    ((record, stored),) = moving.arrive(
        rig.partition, batch, Origin(7, "dead", "redrive", [(1, 2)], 0, [0, 0], 0), START_MS, (5, 1, 0)
    )
    assert stored is not None
    assert stored.integers(STAMPS) is None


def test_no_stamp_is_at_or_below_a_closed_time() -> None:
    rig = server_stamped()
    rig.write([PendingRecord(Closed(NOW_US + 50, START_MS))])
    rig.reload()
    assert send(rig, encode([b"a"])).stamp_us == NOW_US + 51
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_a_closed_time_lets_out_and_makes_late_what_comes_below_it() -> None:
    rig = producer_stamped()
    send(rig, encode([b"a", b"b"], stamps_us=[NOW_US, NOW_US - 10]), stamped(1, 0))
    rig.write([PendingRecord(Closed(NOW_US - 5, START_MS))])
    assert rig.take() == [2]
    rig.reload()
    send(rig, encode([b"late"]), stamped(2, NOW_US - 5))
    send(rig, encode([b"in time"]), stamped(2, NOW_US - 4))
    assert rig.partition.totals.late == 1
    assert rig.partition.moves == {("orders.late", "late"): [(3, 1)]}
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_a_group_ordered_by_time_has_one_consumer_at_a_time() -> None:
    rig = server_stamped()
    send(rig, encode([b"x"] * 4, groups=[b"a", b"a", b"a", b"b"]))
    granted = rig.receive(3)
    assert granted is not None
    assert expand(granted.runs) == [1, 2, 3]
    rig.release(granted.lease, [(1, 1)])
    assert rig.take() == [4], "the others of the group are still out"
    rig.reload()
    assert rig.take() == []
    rig.release(granted.lease, [(2, 1)], delay_ms=50)
    rig.delete(granted.lease, [(3, 1)])
    assert rig.take() == [1]


def test_a_message_that_comes_back_with_a_delay_sets_the_one_before_it_free() -> None:
    rig = server_stamped()
    send(rig, encode([b"x"] * 2))
    granted = rig.receive(2)
    assert granted is not None
    rig.release(granted.lease, [(1, 1)])
    assert rig.take() == []
    rig.release(granted.lease, [(2, 1)], delay_ms=50)
    assert rig.take() == [1]


def test_duplicates_in_a_stamped_batch_leave_the_ids_of_the_others() -> None:
    rig = producer_stamped(window_ms=0)
    batch = encode([b"a", b"b"], deduplication_ids=[b"1", b"2"])
    send(rig, encode([b"a"], deduplication_ids=[b"1"]), stamped(1, NOW_US - 1, counter=5))
    answer = send(rig, batch, stamped(2, NOW_US, counter=8))
    assert answer.duplicates == [0]
    assert expand(answer.runs) == [1, 2]
    let_out(rig, START_MS)
    sorting = rig.partition.sorting
    assert sorting is not None
    floor = sorting.begin_capture().floor
    assert floor is not None
    assert floor[0] == (NOW_US, 2, 9)


def test_a_session_that_was_silent_for_long_begins_anew() -> None:
    rig = Rig(QueueSettings(ordering="causal", window_ms=0))
    send(rig, encode([b"a"]), stamped(1, 10**15))
    let_out(rig, START_MS)
    later_ms = START_MS + limits.PRODUCER_IDLE_MS
    send(rig, encode([b"b"]), stamped(2, 5), later_ms)
    send(rig, encode([b"c"]), stamped(1, 5), later_ms)
    assert rig.partition.totals.late == 0
    let_out(rig, later_ms)
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


@pytest.mark.parametrize("ordering", ["fifo", "best-effort"])
def test_other_queues_keep_stamps_and_check_them(ordering: str) -> None:
    rig = Rig(QueueSettings(ordering=ordering))  # type: ignore[arg-type]  # one of the words
    with pytest.raises(PenstockError) as caught:
        send(rig, encode([b"a"]), stamped(2**48, 1))
    assert caught.value.code is ErrorCode.BAD_REQUEST
    send(rig, encode([b"a"]), stamped(1, 10**15))
    assert rig.take() == [1]
    assert rig.partition.commit_wait.last_us == 0, "a producer cannot move the server's time"


@pytest.mark.parametrize("overflow", ["reject", "drop-oldest"])
def test_late_messages_take_no_room_in_a_full_queue(overflow: str) -> None:
    rig = producer_stamped(window_ms=0, max_messages=2, overflow=overflow)
    send(rig, encode([b"a", b"b"]), stamped(1, NOW_US))
    let_out(rig, START_MS)
    send(rig, encode([b"late", b"late"]), stamped(2, NOW_US - 5))
    assert rig.partition.totals.dropped == 0
    assert rig.partition.moves == {("orders.late", "late"): [(3, 2)]}
    assert rig.take(10) == [1, 2]


# -- best-effort queues --------------------------------------------------------------------------------------


def test_late_messages_go_first_the_oldest_before_the_others() -> None:
    rig = Rig()
    for time_us in (100, 200, 300):
        send(rig, encode([b"x"]), stamped(1, time_us))
    assert rig.take(2) == [1, 2]
    for time_us in (180, 120, 250, 200):
        send(rig, encode([b"x"]), stamped(2, time_us))
    assert rig.partition.totals.late == 2
    rig.reload()
    assert rig.take(10) == [5, 4], "and nothing else with them"
    assert rig.take(10) == [3, 6, 7]
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_a_stamp_from_the_future_makes_nobody_late_who_is_made_after_it_arrived() -> None:
    rig = Rig()
    send(rig, encode([b"x"]), stamped(1, 2**55))
    send(rig, encode([b"x"], stamps_us=[2**55]), stamped(1, 0))
    assert rig.take(2) == [1, 2]
    send(rig, encode([b"x"]), stamped(2, NOW_US + 1), START_MS + 1)
    assert rig.partition.totals.late == 0
    send(rig, encode([b"x"]), stamped(2, NOW_US - 1), START_MS + 1)
    assert rig.partition.totals.late == 1, (
        "it is older than what was handed out, whatever that is stamped with"
    )
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_a_late_message_that_comes_back_is_like_all_others() -> None:
    rig = Rig()
    for time_us in (100, 200):
        send(rig, encode([b"x"]), stamped(1, time_us))
    assert rig.take(1) == [1]
    send(rig, encode([b"x"]), stamped(2, 50))
    granted = rig.receive(1)
    assert granted is not None
    assert expand(granted.runs) == [3]
    rig.release(granted.lease, granted.runs)
    assert rig.take(10) == [2, 3]


def test_late_messages_that_are_gone_are_passed_over_and_a_budget_is_kept() -> None:
    rig = Rig()
    send(rig, encode([b"x"] * 2), stamped(1, 100))
    assert rig.take(1) == [1]
    send(rig, encode([b"y"] * 3), stamped(2, 50))
    send(rig, encode([b"z"], ttls_ms=[10]), stamped(2, 40))
    rig.upkeep(START_MS + 100)
    assert rig.take(2) == [3, 4]
    assert rig.take(2) == [5]
    assert rig.take(2) == [2]


def test_what_is_known_of_stamps_stays_bounded() -> None:
    rig = Rig()
    for number in range(3_000):
        send(rig, encode([b"x"]), stamped(1, 1_000 + number, number))
        granted = rig.receive(1)
        assert granted is not None
        rig.delete(granted.lease, granted.runs)
    heads = rig.partition.late_heads
    assert heads is not None
    assert len(heads.columns()[0]) <= 600
    assert heads.newest_us == 3_999


def test_a_late_message_goes_first_whenever_what_is_known_of_stamps_is_swept() -> None:
    rig = Rig()
    send(rig, encode([b"x"] * 2), stamped(1, 10_000))
    assert rig.take(1) == [1]
    for number in range(1_500):
        send(rig, encode([b"y"]), stamped(2, 100 + number, number))
        granted = rig.receive(1)
        assert granted is not None
        assert expand(granted.runs) == [3 + number]
        rig.delete(granted.lease, granted.runs)
