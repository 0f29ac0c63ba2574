"""The state of a partition as plain values: what two copies of it must agree on, and what must be consistent inside one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.model.runs import normalized, runs_of
from penstock.queue.partition import Partition
from penstock.queue.snapshot.pages import Head, Log, Messages, pages_of
from penstock.queue.snapshot.snapshot import dump
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS

_COUNTED = tuple(states.NAMES)


def _living(partition: Partition) -> dict[int, tuple[int, int, int, int, int]]:
    """Sequence → (state, size, receives, first received, group number) of every message that is not gone."""
    found = {}
    table = partition.table
    for number, chunk in sorted(table.chunks.items()):
        base = number << CHUNK_BITS
        for index, state in enumerate(chunk.states):
            if state & states.STATE_BITS:
                sequence = base + index
                receives = table.receive_counts((sequence, 1))[0]
                first = chunk.first_received_ms[index] if chunk.first_received_ms is not None else 0
                group = chunk.groups[index] if chunk.groups is not None else 0
                found[sequence] = (state, chunk.sizes[index], receives, first, group)
    return found


def differences(expected: Partition, found: Partition) -> Iterator[str]:
    """The differences between two copies of a partition; the positions of messages on disk do not count."""
    mine, theirs = _image(expected), _image(found)
    for name in {**mine, **theirs}:
        left, right = mine.get(name), theirs.get(name)
        if left != right:
            yield f"{name} should be {_shown(left, right)} and is {_shown(right, left)}"


def _image(partition: Partition) -> dict[str, object]:
    """Everything of a partition that only records may change, by the name of what it is."""
    found: dict[str, object] = {}
    tables: dict[str, list[object]] = {}
    for page in pages_of(dump(partition)):
        match page:
            case Head():
                found |= msgspec.structs.asdict(page)
                continue
            case Messages():
                page.positions = b""
            case Log((firsts, _, *others)):
                page = Log((firsts, b"", *others))  # type: ignore[arg-type]  # five in all
            case _:
                pass
        rows = tables.setdefault(f"rows of {type(page).__name__}", [])
        values = msgspec.structs.astuple(page)
        if len(values) == 1 and isinstance(values[0], list):
            rows += values[0]
        else:
            rows.append(values)
    return found | tables


def _shown(value: object, other: object) -> str:
    """A value, or of a list only what differs."""
    if isinstance(value, list) and isinstance(other, list):
        value = [item for item in value if item not in other]
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "…"


def inconsistencies(partition: Partition) -> Iterator[str]:
    """Inconsistencies inside one partition."""
    table = partition.table
    living = _living(partition)
    for state in _COUNTED:
        counted = sum(row[0] & states.STATE_BITS == state for row in living.values())
        if counted != table.counts[state]:
            yield f"{counted} messages are {states.NAMES[state]}, the count says {table.counts[state]}"
    for priority, count in enumerate(table.ready_by_priority):
        counted = sum(
            row[0] & (states.STATE_BITS | states.PRIORITY_BITS) == states.READY | priority
            for row in living.values()
        )
        if counted != count:
            yield f"{counted} messages are ready with priority {priority}, the count says {count}"
    size = sum(row[1] for row in living.values())
    if size != table.bytes:
        yield f"the messages have {size} bytes, the count says {table.bytes}"
    leased = runs_of(s for s, row in sorted(living.items()) if row[0] & states.STATE_BITS == states.LEASED)
    held = [run for _, lease in partition.leases for run in lease.runs()]
    if sum(count for _, count in held) != table.counts[states.LEASED] or normalized(held) != leased:
        yield f"leases hold {normalized(held)}, leased are {leased}"
    moving = runs_of(s for s, row in sorted(living.items()) if row[0] & states.STATE_BITS == states.MOVING)
    on_the_way = [run for runs in partition.moves.values() for run in runs]
    if normalized(on_the_way) != moving:
        yield f"moves hold {normalized(on_the_way)}, moving are {moving}"
    yield from _file_inconsistencies(partition)
    yield from _group_inconsistencies(partition, living)


def _file_inconsistencies(partition: Partition) -> Iterator[str]:
    files: dict[int, int] = {}
    for number, chunk in partition.table.chunks.items():
        counted: dict[int, int] = {}
        for _, position in chunk.living_pieces(None):
            counted[position >> 32] = counted.get(position >> 32, 0) + 1
        if counted != chunk.files:
            yield f"chunk {number} has pieces in files {counted}, the count says {chunk.files}"
        for file, pieces in counted.items():
            files[file] = files.get(file, 0) + pieces
    if files != partition.table.files:
        yield f"there are pieces in files {files}, the count says {partition.table.files}"


def _group_inconsistencies(
    partition: Partition, living: dict[int, tuple[int, int, int, int, int]]
) -> Iterator[str]:
    counted: dict[int, int] = {}
    for row in living.values():
        if row[4]:
            counted[row[4]] = counted.get(row[4], 0) + 1
    named = {number: count for _, number, count in partition.groups.rows()}
    if counted != named:
        yield f"groups have {counted} messages, the count says {named}"
