"""Groups on a queue that is not FIFO: no order is promised, but a noisy group does not starve quiet ones."""

from __future__ import annotations

from array import array

from penstock.model.batch import encode
from tests.queue.rig import Rig, expand


def test_a_noisy_group_of_ten_thousand_does_not_delay_a_quiet_one() -> None:
    rig = Rig()
    rig.send_groups([b"noisy"] * 10_000)
    quiet = rig.send_groups([b"quiet"])[0]
    assert quiet in rig.take(2)


def test_one_at_a_time_groups_take_turns() -> None:
    rig = Rig()
    noisy = set(rig.send_groups([b"noisy"] * 10_000))
    quiet = set(rig.send_groups([b"quiet"] * 5))
    first = [rig.take(1)[0] for _ in range(10)]
    assert len(quiet & set(first)) == 5
    assert len(noisy & set(first)) == 5


def test_a_quiet_group_that_comes_later_is_not_behind_the_backlog() -> None:
    rig = Rig()
    rig.send_groups([b"noisy"] * 10_000)
    for _ in range(7):
        rig.take(100)
    quiet = rig.send_groups([b"quiet"])[0]
    assert quiet in rig.take(10)


def test_messages_without_a_group_take_turns_too() -> None:
    rig = Rig()
    rig.send_groups([b"noisy"] * 10_000)
    plain = rig.send_plain(3)
    assert set(plain) <= set(rig.take(10))
    rig = Rig()
    rig.send_plain(10_000)
    quiet = rig.send_groups([b"quiet"])[0]
    assert quiet in rig.take(10)


def test_many_groups_share_an_answer_equally() -> None:
    rig = Rig()
    for _ in range(50):
        rig.send_groups([b"group %d" % i for i in range(20)])
    taken = rig.take(100)
    by_group = [sum(1 for s in taken if (s - 1) % 20 == group) for group in range(20)]
    assert by_group == [5] * 20


def test_inside_a_group_the_oldest_comes_first_also_after_a_release() -> None:
    rig = Rig()
    sent = rig.send_groups([b"a"] * 10)
    granted = rig.receive(5)
    assert granted is not None
    rig.release(granted.lease, [(sent[1], 2)])
    assert rig.take(10) == [sent[1], sent[2], *sent[5:]]


def test_a_group_does_not_lock() -> None:
    rig = Rig()
    sent = rig.send_groups([b"a"] * 4)
    assert rig.take(2) == sent[:2]
    assert rig.take(2) == sent[2:], "there is no order to keep, so nobody waits for the first two"


def test_a_large_message_is_first_in_the_next_answer_when_it_did_not_fit() -> None:
    rig = Rig()
    for size in (80, 80, 100, 80, 80):
        rig.send(encode([bytes(size)], groups=[b"%d" % rig.partition.table.next]))
    answers = []
    for _ in range(3):
        granted = rig.receive(10, max_bytes=199)
        assert granted is not None
        answers.append(expand(granted.runs))
    assert answers == [[1, 2], [3, 4], [5]], (
        "3 did not fit after 1 and 2, and was not sent to the back for it"
    )


def test_group_names_are_forgotten_with_their_last_message_and_numbers_used_again() -> None:
    rig = Rig()
    for turn in range(20):
        rig.send_groups([b"%d-%d" % (turn, i) for i in range(50)])
        assert len(rig.partition.groups) == 50
        granted = rig.receive(100)
        assert granted is not None
        rig.delete(granted.lease, sorted(granted.runs))
        assert len(rig.partition.groups) == 0
    assert rig.partition.groups.rows() == []
    assert sorted(array("I", rig.partition.groups.free())) == list(range(1, 51))
