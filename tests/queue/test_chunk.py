"""A chunk keeps its columns, its living count and its files in step."""

from __future__ import annotations

from array import array

from penstock.queue.state import states
from penstock.queue.state.chunk import FILE_SHIFT, Chunk

READY = bytes([states.READY])


def at(file: int, offset: int = 0) -> int:
    return file << FILE_SHIFT | offset


def three_pieces() -> Chunk:
    """Messages 0-2 in file 1, 3 in file 2, 4-7 in file 1."""
    chunk = Chunk(0)
    chunk.append(READY * 3, array("I", [1, 2, 3]), at(1, 0))
    chunk.append(READY, array("I", [10]), at(2, 0))
    chunk.append(READY * 4, array("I", [100, 200, 300, 400]), at(1, 64))
    return chunk


def test_appending_counts_pieces_per_file() -> None:
    chunk = three_pieces()
    assert chunk.files == {1: 2, 2: 1}
    assert chunk.living == 8
    assert list(chunk.starts) == [0, 3, 4]


def test_marking_a_run_over_pieces_gone_says_what_it_freed() -> None:
    chunk = three_pieces()
    assert chunk.mark_gone(1, 5) == (2 + 3 + 10 + 100, [2])
    assert chunk.files == {1: 2}
    assert chunk.living == 4
    assert chunk.mark_gone(0, 1) == (1, [1])
    assert chunk.mark_gone(5, 8) == (900, [1])
    assert chunk.files == {}
    assert chunk.living == 0


def test_marking_one_by_one_says_the_same() -> None:
    chunk = three_pieces()
    assert [chunk.mark_one_gone(index) for index in (2, 0, 1)] == [None, None, 1]
    assert chunk.mark_one_gone(3) == 2
    assert [chunk.mark_one_gone(index) for index in (7, 6, 5, 4)] == [None, None, None, 1]
    assert chunk.files == {}


def test_a_piece_ends_where_the_next_begins() -> None:
    chunk = three_pieces()
    assert [chunk.piece_of(index) for index in (0, 2, 3, 4, 7)] == [
        (at(1, 0), 3),
        (at(1, 0), 3),
        (at(2, 0), 4),
        (at(1, 64), 8),
        (at(1, 64), 8),
    ]


def test_only_living_pieces_are_moved() -> None:
    chunk = three_pieces()
    chunk.mark_gone(0, 3)
    assert chunk.living_pieces({1}) == [(2, at(1, 64))]
    assert [chunk.is_living(piece) for piece in range(3)] == [False, True, True]
    chunk.relocate(2, at(9, 64))
    assert chunk.files == {2: 1, 9: 1}
    assert chunk.positions[2] == at(9, 64)
    chunk.count_files()
    assert chunk.files == {2: 1, 9: 1}


def test_the_group_column_begins_when_it_is_needed() -> None:
    chunk = three_pieces()
    chunk.fill_groups(0, None, 8)
    columns = [chunk.groups]
    chunk.append(READY * 2, array("I", [1, 1]), at(1))
    chunk.fill_groups(8, array("I", [5, 6]), 2)
    columns.append(chunk.groups)
    chunk.append(READY, array("I", [1]), at(1))
    chunk.fill_groups(10, None, 1)
    columns.append(chunk.groups)
    full = array("I", [0] * 8 + [5, 6, 0])
    assert columns == [None, full, full]
