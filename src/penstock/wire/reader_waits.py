"""How much of a node's port one reader may use: connections, and unanswered reads.

A read at the end of a log waits there, and takes room that all readers of the log share. A client may open many
connections with its ticket, so both are counted by holder. Penstock's own clients stay far below these limits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from penstock.model.batch import Buffer
from penstock.model.limits import LOG_READERS_WAITING_PER_QUEUE
from penstock.wire.frames import frames_in
from penstock.wire.read_ticket import TicketError

READS_A_CONNECTION = 256
"""Unanswered at once; a log is read with 64 at most."""
READS_A_HOLDER = LOG_READERS_WAITING_PER_QUEUE // 4
CONNECTIONS_A_HOLDER = 1_024


class _Held:
    """The use of one holder."""

    __slots__ = ("connections", "reads")

    def __init__(self) -> None:
        self.connections = 0
        self.reads = 0


class ReaderWaits:
    """All holders that have connections."""

    def __init__(self) -> None:
        self._held: dict[Hashable, _Held] = {}

    def begin(self, holder: Hashable) -> ReadsUnderWay:
        """A connection of a holder; raises `TicketError` where it has too many."""
        held = self._held.get(holder)
        if held is None:
            held = self._held[holder] = _Held()
        elif held.connections >= CONNECTIONS_A_HOLDER:
            raise TicketError("the holder of its ticket has too many connections")
        held.connections += 1
        return ReadsUnderWay(self, holder, held)

    def ended(self, holder: Hashable, held: _Held) -> None:
        """One of its connections is gone."""
        held.connections -= 1
        if not held.connections:
            del self._held[holder]

    def __len__(self) -> int:
        return len(self._held)


class ReadsUnderWay:
    """The unanswered reads of one connection."""

    __slots__ = ("_all", "_held", "_holder", "_ids")

    def __init__(self, all_holders: ReaderWaits, holder: Hashable, held: _Held) -> None:
        self._all = all_holders
        self._holder = holder
        self._held = held
        self._ids: set[int] = set()

    def admit(self, request_id: int) -> bool:
        """Whether there is room for one more; raises `TicketError` for an id that is in use, whose answer would end two."""
        ids, held = self._ids, self._held
        if request_id in ids:
            raise TicketError("it uses the id of a read that is under way")
        if len(ids) >= READS_A_CONNECTION or held.reads >= READS_A_HOLDER:
            return False
        ids.add(request_id)
        held.reads += 1
        return True

    def answered(self, buffers: Sequence[Buffer]) -> None:
        """Answers are about to be written."""
        for request_id, _, _ in frames_in(buffers):
            if request_id in self._ids:
                self._ids.discard(request_id)
                self._held.reads -= 1

    def end(self) -> None:
        """The connection is gone."""
        self._held.reads -= len(self._ids)
        self._ids.clear()
        self._all.ended(self._holder, self._held)
