"""A purge of all messages in one step, for any number and any state of messages.

Tables are not emptied but replaced by new ones. The old tables are freed later, and a running capture continues with them.
Messages that move to another queue stay, and so does everything that belongs to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from penstock.model.run_set import RunSet
from penstock.queue.ready.groups import FifoGroups, GroupNames
from penstock.queue.ready.lanes import Lanes
from penstock.queue.ready.late_heads import LateHeads
from penstock.queue.ready.sorted_order import SortedOrder
from penstock.queue.state.attempts import AttemptTable
from penstock.queue.state.chunk import CHUNK_BITS
from penstock.queue.state.deduplication import DeduplicationWindow
from penstock.queue.state.leases import LeaseTable
from penstock.queue.state.outgoing_moves import OutgoingMoves
from penstock.queue.state.states import RUNS_LIVING
from penstock.queue.state.table import MessageTable
from penstock.queue.state.timers import SlotTimers


class Purgeable(Protocol):
    """The parts of a partition that a purge changes."""

    table: MessageTable
    leases: LeaseTable
    attempts: AttemptTable
    delays: SlotTimers
    expiries: SlotTimers
    window: DeduplicationWindow
    groups: GroupNames
    order: Lanes | FifoGroups
    sorting: SortedOrder | None
    late_heads: LateHeads | None
    moves: OutgoingMoves

    def new_order(self) -> Lanes | FifoGroups:
        """The ready order that the settings ask for, empty."""


def purge_all(partition: Purgeable) -> tuple[int, list[object]]:
    """All messages are gone that are not on their way elsewhere; returns how many, and what is to be freed.

    `goes_at_once` must allow it.
    """
    table = partition.table
    moving = bool(partition.moves)
    purged, chunks = table.purge(_chunks_of(table.chunks, partition.moves.values()) if moving else ())
    given_up: list[object] = [chunks, partition.leases, partition.attempts, partition.delays]
    partition.leases = LeaseTable(partition.leases.next)
    partition.attempts = AttemptTable()
    partition.delays = SlotTimers(partition.delays.swept)
    given_up.append(partition.window.clear(table.next))
    if partition.sorting is not None:
        given_up += partition.sorting.clear()
    if moving:
        return purged, given_up + (_order_moving(partition) if is_ordered(partition) else [])
    given_up += [partition.expiries, partition.groups, partition.order]
    partition.expiries = SlotTimers(partition.expiries.swept)
    partition.groups = GroupNames()
    partition.order = partition.new_order()
    if partition.sorting is not None:
        given_up += partition.sorting.clear_late()
    if partition.late_heads is not None and isinstance(partition.order, Lanes):
        partition.late_heads.ahead = partition.order.ahead
    return purged, given_up


def is_ordered(partition: Purgeable) -> bool:
    """Whether messages have groups, or an order among themselves."""
    return bool(partition.groups) or isinstance(partition.order, FifoGroups)


def goes_at_once(partition: Purgeable) -> bool:
    """Whether `purge_all` can purge a partition: not where the order of what is on its way does not follow from its numbers."""
    by_stamps = partition.sorting is not None or partition.late_heads is not None
    return not (partition.moves and by_stamps and is_ordered(partition))


def _order_moving(partition: Purgeable) -> list[object]:
    """Rebuilds groups and order from the moving messages; returns the old ones."""
    before, table = partition.groups, partition.table
    given_up: list[object] = [before, partition.order]
    partition.groups, partition.order = GroupNames(), partition.new_order()
    for chunk, start, stop in table.living(1, table.next):
        for match in RUNS_LIVING.finditer(chunk.states, start, stop):
            low, high = match.span()
            groups = None
            if chunk.groups is not None:
                groups = partition.groups.enter([before.name(number) for number in chunk.groups[low:high]])
                chunk.groups[low:high] = groups
            partition.order.sent(((chunk.number << CHUNK_BITS) + low, high - low), groups)
    return given_up


def _chunks_of(chunks: Iterable[int], moves: Iterable[RunSet]) -> set[int]:
    """Those of the chunks in which something is on its way."""
    lists = list(moves)
    return {
        number
        for number in chunks
        if any(runs.has_any(number << CHUNK_BITS, number + 1 << CHUNK_BITS) for runs in lists)
    }
