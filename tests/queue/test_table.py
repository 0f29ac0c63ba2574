"""The table: runs over chunks, counts, receives, and what it costs."""

from __future__ import annotations

from array import array

import pytest

from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_MESSAGES
from penstock.queue.state.states import DELAYED, LEASED, MOVING, READY
from penstock.queue.state.table import MessageTable


def filled(count: int, *, batch: int = 1_000, file: int = 1) -> MessageTable:
    """Ready messages of 1 byte."""
    table = MessageTable()
    while table.next <= count:
        size = min(batch, count + 1 - table.next)
        position = file << 32 | table.next
        table.append(bytes([READY]) * size, array("I", [1] * size), size, position, None)
    return table


def test_a_batch_over_chunks_is_one_run() -> None:
    table = filled(10_000, batch=10_000)
    assert table.next == 10_001
    assert table.files == {1: 3}
    assert [(chunk.number, start, stop) for chunk, start, stop in table.pieces((4_000, 5_000))] == [
        (0, 4_000, 4_096),
        (1, 0, 4_096),
        (2, 0, 808),
    ]
    assert table.runs_in(states.RUNS_LIVING, 1, table.next, 10**6) == [(1, 10_000)]
    assert table.runs_in(states.RUNS_LIVING, 4_090, 4_100, 8) == [(4_090, 8)]


def test_pieces_stop_at_the_end_of_what_was_sent() -> None:
    table = filled(10)
    assert [(start, stop) for _, start, stop in table.pieces((5, 100))] == [(5, 11)]
    assert table.pieces((11, 5)) == table.pieces((10**9, 5)) == []
    assert [(start, stop) for _, start, stop in table.pieces((5, 10_000))] == [(5, 11)]


@pytest.mark.parametrize("run", [(7, 1), (7, 3), (4_095, 2), (4_000, 5_000)])
def test_moving_from_state_to_state_keeps_the_counts(run: tuple[int, int]) -> None:
    table = filled(10_000)
    count = run[1]
    for state in (DELAYED, READY, LEASED, MOVING, READY):
        table.move([run], state)
        assert table.counts[state] == (10_000 if state == READY else count)
        assert table.messages == 10_000
        assert table.ready_by_priority[0] == table.counts[READY]
        assert table.state(run[0]) == state


def test_the_gone_stay_gone() -> None:
    table = filled(100)
    assert table.mark_gone([(5, 1), (10, 10)]) == 11
    assert table.mark_gone([(5, 1), (10, 10)]) == 0
    for state in (LEASED, READY):
        table.move([(1, 100)], state)
        table.move([(5, 1)], state)
    assert table.counts[READY] == table.messages == table.bytes == 89
    assert table.runs_in(states.RUNS_IN[READY], 1, 101, 1_000) == [(1, 4), (6, 4), (20, 81)]
    assert table.state(5) == states.GONE
    assert table.state(0) == table.state(101) == table.state(10**9) == states.GONE
    assert table.mark_gone([(90, 10**6)]) == 11


def test_a_run_of_different_priorities_is_counted_by_priority() -> None:
    table = MessageTable()
    column = bytes(READY | priority for priority in (0, 9, 9, 3))
    table.append(column, array("I", [1] * 4), 4, 1 << 32, None)
    assert table.ready_by_priority == [1, 0, 0, 1, 0, 0, 0, 0, 0, 2]
    table.lease([(1, 4)], 1)
    assert table.ready_by_priority == [0] * 10
    table.move([(2, 1)], READY)
    table.move([(3, 2)], READY)
    assert table.ready_by_priority == [0, 0, 0, 1, 0, 0, 0, 0, 0, 2]
    assert table.mark_gone([(1, 4)]) == 4
    assert table.ready_by_priority == [0] * 10


def test_a_chunk_goes_when_all_of_it_is_gone() -> None:
    table = filled(3 * CHUNK_MESSAGES)
    assert sorted(table.chunks) == [0, 1, 2, 3]
    table.mark_gone([(CHUNK_MESSAGES, CHUNK_MESSAGES)])
    assert sorted(table.chunks) == [0, 2, 3]
    table.mark_gone([(first, 1) for first in range(1, CHUNK_MESSAGES)])
    assert table.first_living() == 2 * CHUNK_MESSAGES
    table.mark_gone([(1, table.next)])
    assert table.messages == table.bytes == 0
    assert sorted(table.chunks) == [3], "the chunk that is still being filled stays"


def test_an_emptied_file_is_told_once() -> None:
    table = filled(50, batch=10, file=1)
    table.append(bytes([READY]) * 10, array("I", [1] * 10), 10, 2 << 32, None)
    table.mark_gone([(1, 49)])
    assert table.emptied == []
    table.mark_gone([(50, 1)])
    assert table.emptied == [1]
    assert table.files == {2: 1}
    table.relocate(0, 0, 1 << 32, 9 << 32)  # nothing lives there
    table.relocate(0, 5, 1 << 32, 9 << 32)  # something else lies there
    table.relocate(0, 5, 2 << 32, 3 << 32)
    assert table.emptied == [1, 2]
    assert table.files == {3: 1}
    assert list(table.living_places({3})) == [(3 << 32, 0, 5)]


def test_receives_are_counted_beyond_a_byte() -> None:
    table = filled(20)
    for _ in range(600):
        table.lease([(3, 2), (7, 1)], 1)
        table.move([(3, 2), (7, 1)], READY)
    table.lease([(4, 1)], 1)
    assert table.receive_counts((1, 8)) == [0, 0, 600, 601, 0, 0, 600, 0]
    assert table.receive_counts((7, 1)) == [600]
    assert len(table.many_attempts) == 3
    table.mark_gone([(1, 20)])
    assert table.many_attempts == {}


def test_the_first_receive_is_remembered_once() -> None:
    table = filled(5_000)
    table.remember_first_received([(4_094, 4)], 100)
    table.remember_first_received([(4_096, 4)], 200)
    assert table.first_received((4_093, 8), 7) == [7, 100, 100, 100, 100, 200, 200, 7]
    assert table.first_received((1, 2), 7) == [7, 7]


def test_looking_for_life() -> None:
    table = filled(10_000)
    table.mark_gone([(100, 8_000)])
    assert table.is_alive((99, 1))
    assert not table.is_alive((100, 1))
    assert not table.is_alive((100, 8_000))
    assert table.is_alive((100, 8_001))
    assert not table.is_alive((20_000, 50))
    assert table.among(states.RUNS_LIVING, [(90, 20), (8_090, 20)]) == [(90, 10), (8_100, 10)]
    assert table.size_of([(90, 10), (9_000, 5)]) == 15


def test_a_waiting_message_costs_few_bytes() -> None:
    """The target is 16 bytes, and is met even by messages sent one at a time."""
    assert filled(100_000, batch=100).memory_bytes() / 100_000 < 5.5
    assert filled(20_000, batch=1).memory_bytes() / 20_000 < 16
