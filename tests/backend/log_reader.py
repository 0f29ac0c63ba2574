"""Answers of a retained log taken apart."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.runs import Runs
from penstock.wire import messages
from tests.backend.harness import Arrived, NodeHarness, taken_apart


class Slice(NamedTuple):
    """What a reader got."""

    runs: Runs
    bodies: list[bytes]
    next: int
    end: int
    size: int
    """Bytes of the answer's body."""


def opened_slice(arrived: Arrived) -> Slice:
    """Takes an answer apart and checks that it has no gaps."""
    answer = arrived.answer
    assert isinstance(answer, messages.LogSlice), answer
    runs, bodies = taken_apart(answer.batches, arrived.body)
    ends = [first + count for first, count in runs]
    assert [first for first, _ in runs[1:]] == ends[:-1]
    assert not runs or answer.next == ends[-1]
    return Slice(runs, bodies, answer.next, answer.end, len(arrived.body))


def read_log(node: NodeHarness, queue_id: int, start: int, **options: object) -> Slice:
    """What there is to read now, from an offset on."""
    return opened_slice(node.ask(messages.ReadLog(queue_id, start, **options)))  # type: ignore[arg-type]  # as the caller names them


def read_all(node: NodeHarness, queue_id: int, start: int | None = None) -> list[bytes]:
    """The whole log, or all of it from an offset on."""
    if start is None:
        bounds = node.call(messages.FindOffset(queue_id))
        assert isinstance(bounds, messages.LogBounds)
        start = bounds.begin
    bodies: list[bytes] = []
    while (piece := read_log(node, queue_id, start)).bodies:
        assert piece.runs[0][0] == start
        bodies += piece.bodies
        start = piece.next
    assert start == piece.end
    return bodies
