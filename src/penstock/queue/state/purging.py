"""A purge of all messages: one step, however many there are, and whatever they are waiting for.

Tables are not emptied but replaced by new ones. Those that were there are given to whoever frees them, and a capture that is
under way goes on with them. Messages that are on their way to another queue stay, and what belongs to them.
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
from penstock.queue.state.table import MessageTable
from penstock.queue.state.timers import SlotTimers


class Purgeable(Protocol):
    """What a purge changes of a partition."""

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

    Where some are on their way, none may have a group, and the order must not be a strict one.
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
        return purged, given_up
    given_up += [partition.expiries, partition.groups, partition.order]
    partition.expiries = SlotTimers(partition.expiries.swept)
    partition.groups = GroupNames()
    partition.order = partition.new_order()
    if partition.sorting is not None:
        given_up += partition.sorting.clear_late()
    if partition.late_heads is not None and isinstance(partition.order, Lanes):
        partition.late_heads.ahead = partition.order.ahead
    return purged, given_up


def _chunks_of(chunks: Iterable[int], moves: Iterable[RunSet]) -> set[int]:
    """Those of the chunks in which something is on its way."""
    lists = list(moves)
    return {
        number
        for number in chunks
        if any(runs.has_any(number << CHUNK_BITS, number + 1 << CHUNK_BITS) for runs in lists)
    }
