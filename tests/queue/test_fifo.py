"""FIFO queues: strict order in a group, groups in parallel, and the rules that SQS users rely on."""

from __future__ import annotations

from random import Random

import pytest

from penstock.model.batch import UNSET, encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions.decision import Granted
from tests.queue.rig import START_MS, Rig, expand

LATER_MS = START_MS + 60_000


def fifo(**settings: object) -> Rig:
    return Rig(QueueSettings(ordering="fifo", **settings))  # type: ignore[arg-type]  # as the caller names them


def received(rig: Rig, max_messages: int = 10, now_ms: int = START_MS, timeout_ms: int = 1_000) -> Granted:
    granted = rig.receive(max_messages, now_ms, visibility_timeout_ms=timeout_ms)
    assert granted is not None
    return granted


def test_an_answer_takes_as_many_as_possible_of_a_group_then_the_next() -> None:
    rig = fifo()
    g1a, g2a, g1b, g1c = rig.send_groups([b"1", b"2", b"1", b"1"])
    assert rig.take(10) == [g1a, g1b, g1c, g2a]


def test_groups_are_served_in_order_of_arrival_and_go_to_the_back_once_served() -> None:
    rig = fifo()
    g1m1, g1m2, g2m1, g2m2, g3m1 = rig.send_groups([b"1", b"1", b"2", b"2", b"3"])
    first = received(rig, 3, timeout_ms=0)
    assert expand(first.runs) == [g1m1, g1m2, g2m1]
    rig.upkeep(START_MS)
    assert rig.take(10) == [g3m1, g1m1, g1m2, g2m1, g2m2]


def test_a_group_with_a_message_out_is_locked_and_new_sends_do_not_unlock_it() -> None:
    rig = fifo()
    rig.send_groups([b"a", b"a", b"a"])
    received(rig, 1)
    rig.send_groups([b"a"])
    assert rig.take(10) == []
    other = rig.send_groups([b"b"])
    assert rig.take(10) == other, "one stuck group blocks nobody else"


def test_deleting_all_that_is_out_unlocks_the_group() -> None:
    rig = fifo()
    sent = rig.send_groups([b"a"] * 4)
    granted = received(rig, 2)
    rig.delete(granted.lease, [(sent[0], 1)])
    assert rig.take(10) == []
    rig.delete(granted.lease, [(sent[1], 1)])
    assert rig.take(10) == sent[2:]


def test_deleting_the_later_one_first_does_not_unlock() -> None:
    rig = fifo()
    sent = rig.send_groups([b"a"] * 3)
    granted = received(rig, 2)
    rig.delete(granted.lease, [(sent[1], 1)])
    assert rig.take(10) == []
    rig.delete(granted.lease, [(sent[0], 1)])
    assert rig.take(10) == [sent[2]]


@pytest.mark.parametrize("extended", [0, 1, 2])
def test_when_one_of_three_is_extended_only_those_before_it_come_back(extended: int) -> None:
    rig = fifo()
    sent = rig.send_groups([b"a"] * 4)
    granted = received(rig, 3)
    rig.extend(granted.lease, [(sent[extended], 1)], 50_000)
    rig.upkeep(START_MS + 1_000)
    assert rig.take(10, START_MS + 1_000) == sent[:extended]


def test_a_released_message_and_those_after_it_up_to_the_first_still_out_are_available() -> None:
    rig = fifo()
    sent = rig.send_groups([b"a"] * 5)
    granted = received(rig, 4)
    rig.release(granted.lease, [(sent[1], 1)])
    assert rig.take(10) == [], "its predecessor is still out"
    rig.release(granted.lease, [(sent[0], 1)])
    assert rig.take(10) == sent[:2]


def test_order_holds_after_redelivery() -> None:
    rig = fifo()
    sent = rig.send_groups([b"a"] * 5)
    received(rig, 3, timeout_ms=1_000)
    rig.upkeep(START_MS + 1_000)
    assert rig.take(10, START_MS + 1_000) == sent


def test_withheld_messages_count_as_ready() -> None:
    rig = fifo()
    rig.send_groups([b"a"] * 5)
    received(rig, 2)
    counts = rig.partition.table.counts
    assert sorted(counts.values()) == [0, 0, 0, 2, 3]


def test_a_queue_delay_keeps_the_order() -> None:
    rig = fifo(delay_ms=100)
    sent = rig.send_groups([b"a"], START_MS) + rig.send_groups([b"a"], START_MS + 50)
    assert rig.take() == []
    rig.upkeep(START_MS + 100)
    assert rig.take(10, START_MS + 100) == sent[:1]
    rig.upkeep(START_MS + 150)
    assert rig.take(10, START_MS + 150) == [], "the first is out"


def test_a_delayed_message_holds_up_its_group_and_no_other() -> None:
    rig = fifo()
    batch = encode([b"x"] * 3, groups=[b"a", b"a", b"b"], delays_ms=[500, UNSET, UNSET])
    first, second, other = expand(rig.send(batch).runs)
    assert rig.take() == [other]
    rig.upkeep(START_MS + 500)
    assert rig.take(10, START_MS + 500) == [first, second]


def test_a_release_with_a_delay_holds_up_the_group() -> None:
    rig = fifo()
    sent = rig.send_groups([b"a"] * 2)
    granted = received(rig, 1)
    rig.release(granted.lease, granted.runs, delay_ms=300)
    assert rig.take() == []
    rig.upkeep(START_MS + 300)
    assert rig.take(10, START_MS + 300) == sent


def test_messages_without_a_group_are_one_group() -> None:
    rig = fifo()
    sent = rig.send_plain(3) + rig.send_groups([b""])
    received(rig, 1)
    assert rig.take() == []
    rig.upkeep(LATER_MS)
    assert rig.take(10, LATER_MS) == sent


def test_a_group_that_emptied_works_again() -> None:
    rig = fifo()
    for _ in range(5):
        sent = rig.send_groups([b"a", b"b"])
        granted = received(rig)
        assert expand(granted.runs) == sent
        rig.delete(granted.lease, granted.runs)
    assert len(rig.partition.groups) == 0


def test_a_dead_letter_unlocks_its_group_once_it_has_left() -> None:
    rig = fifo(max_receives=1, dead_letter_queue="dead")
    sent = rig.send_groups([b"a"] * 2)
    granted = received(rig, 1)
    rig.release(granted.lease, granted.runs)
    assert rig.take() == [], "nothing overtakes a message that is on its way"
    rig.write(moving.finish_move(rig.partition, [(sent[0], 1)], START_MS))
    assert rig.take() == sent[1:]


def test_an_expired_head_unlocks_its_group() -> None:
    rig = fifo()
    batch = encode([b"x"] * 2, groups=[b"a"] * 2, ttls_ms=[100, UNSET])
    _, second = expand(rig.send(batch).runs)
    received(rig, 1, timeout_ms=50_000)
    rig.upkeep(START_MS + 100)
    assert rig.take(10, START_MS + 100) == [second]


def test_priorities_are_refused() -> None:
    with pytest.raises(PenstockError) as caught:
        fifo().send(encode([b"x"], priorities=[1]))
    assert caught.value.code is ErrorCode.UNSUPPORTED


def test_a_message_too_large_for_the_rest_of_an_answer_keeps_its_turn() -> None:
    rig = fifo()
    rig.send(encode([bytes(10), bytes(500), bytes(10)], groups=[b"a", b"b", b"c"]))
    assert expand(received_bytes(rig, 100).runs) == [1]
    assert expand(received_bytes(rig, 100).runs) == [2]
    assert expand(received_bytes(rig, 100).runs) == [3]


def received_bytes(rig: Rig, max_bytes: int) -> Granted:
    granted = rig.receive(10, max_bytes=max_bytes)
    assert granted is not None
    return granted


def test_a_hundred_thousand_groups_are_normal() -> None:
    rig = fifo()
    for start in range(0, 100_000, 10_000):
        rig.send_groups([b"%d" % i for i in range(start, start + 10_000)])
    stuck = received(rig, 1, timeout_ms=50_000)
    assert expand(stuck.runs) == [1]
    granted = received(rig, 10_000)
    assert len(expand(granted.runs)) == 10_000
    assert rig.delete(granted.lease, sorted(granted.runs)).done == 10_000
    assert len(rig.partition.groups) == 90_000


def test_random_consumers_see_every_group_in_order() -> None:
    """Many consumers that crash, release and delete at random: each group's deletions are in order."""
    dice = Random(11)
    rig = fifo()
    names = [b"%d" % i for i in range(20)]
    group_of: dict[int, bytes] = {}
    done: dict[bytes, list[int]] = {name: [] for name in names}
    out: list[Granted] = []
    now_ms = START_MS
    for turn in range(600):
        if turn < 300:
            batch = [dice.choice(names) for _ in range(dice.randint(1, 10))]
            group_of.update(zip(rig.send_groups(batch, now_ms), batch, strict=True))
        granted = rig.receive(dice.randint(1, 8), now_ms, visibility_timeout_ms=dice.choice([50, 5_000]))
        if granted is not None:
            out.append(granted)
        if out and dice.random() < 0.7:
            lease, runs, _ = out.pop(dice.randrange(len(out)))
            sequences = expand(runs)
            kept = dice.randint(0, len(sequences))
            for sequence in sequences[:kept]:
                if rig.delete(lease, [(sequence, 1)], now_ms).done:
                    done[group_of[sequence]].append(sequence)
            if kept < len(sequences):
                rig.release(lease, [(s, 1) for s in sequences[kept:]], now_ms)
        now_ms += 10
        rig.upkeep(now_ms)
    rig.upkeep(now_ms + 10_000)
    while granted := rig.receive(10, now_ms + 10_000):
        for sequence in expand(granted.runs):
            done[group_of[sequence]].append(sequence)
        rig.delete(granted.lease, sorted(granted.runs), now_ms + 10_000)
    assert sorted(s for sequences in done.values() for s in sequences) == sorted(group_of)
    assert all(sequences == sorted(sequences) for sequences in done.values())
