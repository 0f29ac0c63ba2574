"""A receive asked again under its attempt id: the same messages, or a reason why not."""

from __future__ import annotations

import pytest

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Granted
from penstock.queue.snapshot import snapshot
from penstock.queue.state.attempts import AttemptTable
from tests.queue.rig import START_MS, Rig, expand


def served(count: int = 3, **settings: object) -> tuple[Rig, Granted]:
    """Messages out for a second under the attempt "a"."""
    rig = Rig(QueueSettings(ordering="fifo", visibility_timeout_ms=1_000, **settings))  # type: ignore[arg-type]  # as the test names them
    rig.send_groups([b"g"] * count)
    decision = receiving.grant(rig.partition, count, 1 << 20, None, START_MS, b"a")
    assert decision is not None
    return rig, rig.carry_out(decision)


def again(rig: Rig, now_ms: int) -> Granted | None:
    """The same attempt once more; None: a fresh receive may follow."""
    decision = receiving.repeat(rig.partition, b"a", None, now_ms)
    return rig.carry_out(decision) if decision is not None else None


def test_the_same_messages_of_the_same_lease_for_longer() -> None:
    rig, first = served()
    second = again(rig, START_MS + 900)
    assert second == Granted(first.lease, [(1, 3)], START_MS + 1_900)
    rig.upkeep(START_MS + 1_899)
    assert rig.partition.leases.get(first.lease) is not None
    assert rig.partition.table.receive_counts((1, 3)) == [1, 1, 1]


def test_an_attempt_that_was_never_served_is_fresh() -> None:
    rig, _ = served()
    assert receiving.repeat(rig.partition, b"b", None, START_MS) is None


def test_a_lease_that_ended_by_time_makes_it_fresh() -> None:
    rig, _ = served()
    rig.upkeep(START_MS + 1_000)
    assert again(rig, START_MS + 1_001) is None
    assert len(rig.partition.attempts) == 0


def test_a_lease_that_ended_by_time_into_the_dead_letters_makes_it_fresh() -> None:
    rig, _ = served(max_receives=1, dead_letter_queue="dead")
    rig.upkeep(START_MS + 1_000)
    assert again(rig, START_MS + 1_001) is None


@pytest.mark.parametrize("how", ["delete", "release", "delete-then-ended", "partly-ended"])
def test_what_was_settled_cannot_be_had_again(how: str) -> None:
    rig, first = served()
    match how:
        case "delete":
            rig.delete(first.lease, [(2, 1)])
        case "release":
            rig.release(first.lease, [(1, 3)])
        case "partly-ended":
            rig.extend(first.lease, [(1, 1)], 5_000)
            rig.upkeep(START_MS + 1_000)
        case _:
            rig.delete(first.lease, [(1, 1)])
            rig.upkeep(START_MS + 1_000)
    with pytest.raises(PenstockError) as caught:
        again(rig, START_MS + 1_001)
    assert caught.value.code is ErrorCode.ATTEMPT_CHANGED


def test_a_purge_makes_it_fresh() -> None:
    rig, _ = served()
    rig.carry_out(settling.purge(rig.partition, START_MS))
    assert again(rig, START_MS + 1) is None


def test_it_is_forgotten_after_five_minutes() -> None:
    rig, first = served()
    rig.extend(first.lease, [(1, 3)], 2 * limits.ATTEMPT_MS)
    assert again(rig, START_MS + limits.ATTEMPT_MS) is None
    rig.send_groups([b"other"], START_MS + limits.ATTEMPT_MS)
    assert expand(rig.receive(5, START_MS + limits.ATTEMPT_MS).runs) == [4]  # type: ignore[union-attr]  # it was served
    assert len(rig.partition.attempts) == 0, "any receive forgets what is over"


def test_it_survives_replay_and_snapshot() -> None:
    rig, first = served()
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)
    rig.reload()
    second = again(rig, START_MS + 10)
    assert second is not None
    assert second.lease == first.lease


def test_the_table_is_bounded_by_number() -> None:
    table = AttemptTable()
    for number in range(limits.ATTEMPTS_PER_QUEUE + 10):
        table.add(b"%d" % number, number, 1, START_MS)
    assert len(table) == limits.ATTEMPTS_PER_QUEUE
    assert table.find(b"9", START_MS) is None
    assert table.find(b"10", START_MS) is not None
