"""The invariants of a partition, each counted anew from the columns and compared with what the engine keeps."""

from __future__ import annotations

from collections import Counter

from penstock.model.limits import PRIORITIES
from penstock.model.runs import normalized
from penstock.queue.log.index import LoggedRun
from penstock.queue.partition import Partition
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MESSAGES
from tests.queue.rig import expand


def living(partition: Partition) -> dict[int, int]:
    """The state byte of every message that is not gone."""
    return {
        (chunk.number << CHUNK_BITS) + index: byte
        for chunk in partition.table.chunks.values()
        for index, byte in enumerate(chunk.states)
        if byte
    }


def check(partition: Partition) -> None:
    """Raises if anything the engine keeps does not follow from the columns."""
    messages = living(partition)
    _check_counts(partition, messages)
    _check_chunks(partition)
    _check_leases(partition, messages)
    _check_groups(partition, messages)
    _check_timers(partition, messages)
    _check_log(partition)
    moving = sorted(s for s, byte in messages.items() if byte & states.STATE_BITS == states.MOVING)
    assert sorted(s for runs in partition.moves.values() for s in expand(runs)) == moving


def _check_counts(partition: Partition, messages: dict[int, int]) -> None:
    table = partition.table
    by_state = Counter(byte & states.STATE_BITS for byte in messages.values())
    assert {state: count for state, count in table.counts.items() if count} == by_state
    assert table.messages == len(messages)
    ready = [0] * PRIORITIES
    for byte in messages.values():
        if byte & states.STATE_BITS == states.READY:
            ready[byte & states.PRIORITY_BITS] += 1
    assert table.ready_by_priority == ready
    totals = partition.totals
    ended = totals.deleted + totals.expired + totals.dead_lettered + totals.dropped + totals.purged
    assert totals.sent - ended >= len(messages)  # the rest was redriven
    assert all(sequence < table.next for sequence in messages)
    assert set(table.many_attempts) <= set(messages)


def _check_chunks(partition: Partition) -> None:
    table = partition.table
    assert list(table.chunks) == sorted(table.chunks)
    size = 0
    files: Counter[int] = Counter()
    for chunk in table.chunks.values():
        bytes_here, files_here = 0, Counter[int]()
        ends = [*chunk.starts[1:], len(chunk.states)]
        for low, high, position in zip(chunk.starts, ends, chunk.positions, strict=True):
            if any(chunk.states[low:high]):
                files_here[position >> 32] += 1
        for index, byte in enumerate(chunk.states):
            bytes_here += chunk.sizes[index] if byte else 0
        assert chunk.files == files_here
        assert len(chunk.sizes) == len(chunk.states)
        assert chunk.living == sum(1 for byte in chunk.states if byte)
        assert chunk.living or chunk.number == table.next >> CHUNK_BITS, "a chunk with nothing alive stays"
        assert chunk.groups is None or len(chunk.groups) == len(chunk.states)
        size += bytes_here
        files += files_here
    assert table.bytes == size
    assert table.files == files


def _check_log(partition: Partition) -> None:
    log = partition.log
    if log is None:
        return
    batches: list[LoggedRun] = []
    while more := log.batches(
        batches[-1].first + batches[-1].messages if batches else log.begin, 10**9, 10**12, 10**9
    ):
        batches += more
    assert log.next == partition.table.next
    assert [partition.gaps.after(run.first + run.messages) for run in batches] == (
        [run.first for run in batches[1:]] + [log.next] * bool(batches)
    )
    assert log.begin == (batches[0].first if batches else log.next)
    assert log.messages == sum(run.messages for run in batches)
    assert log.files == Counter(run.position >> 32 for run in batches)
    for file in log.files:
        lie_there = [run.position for run in batches if run.position >> 32 == file]
        assert [position for position, _, _ in log.places_in({file})] == lie_there
    positions = {run.first: run.position for run in batches}
    for chunk in partition.table.chunks.values():  # the table and the log agree on where a batch lies
        for low, position in zip(chunk.starts, chunk.positions, strict=True):
            first = (chunk.number << CHUNK_BITS) + low
            if chunk.states[low] and first in positions:
                assert positions[first] == position


def _check_leases(partition: Partition, messages: dict[int, int]) -> None:
    held: list[int] = []
    for _, lease in partition.leases:
        assert lease.parts
        for _, runs in lease.parts:
            assert runs == normalized(runs) != []
            held += expand(runs)
    assert len(held) == len(set(held)), "a message is under two leases"
    assert set(held) == {s for s, byte in messages.items() if byte & states.STATE_BITS == states.LEASED}
    if held:
        first_end = min(until for _, lease in partition.leases for until, _ in lease.parts)
        assert partition.leases.next_ms() == first_end


def _check_groups(partition: Partition, messages: dict[int, int]) -> None:
    groups = partition.groups.rows()
    names = {number: name for name, number, _ in groups}
    assert len(names) == len(groups)
    counted: Counter[int] = Counter()
    for sequence, byte in messages.items():
        chunk = partition.table.chunks[sequence >> CHUNK_BITS]
        number = chunk.groups[sequence & (CHUNK_MESSAGES - 1)] if chunk.groups is not None else 0
        assert bool(byte & states.GROUPED) == bool(number and not partition.settings.strict)
        if number:
            counted[number] += 1
    assert {number: count for _, number, count in groups} == counted


def _check_timers(partition: Partition, messages: dict[int, int]) -> None:
    """A message that is delayed has exactly one timer: more could end a later delay early, none never."""
    timed = Counter(sequence for _, runs in partition.delays for sequence in expand(runs))
    for sequence, byte in messages.items():
        if byte & states.STATE_BITS == states.DELAYED:
            assert timed[sequence] == 1
        elif byte & states.STATE_BITS in (states.READY, states.LEASED):
            assert not timed[sequence], "a timer is left over from an earlier delay"
