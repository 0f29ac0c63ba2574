"""Readers of retained logs that wait: for messages, for their connection, or for the disk."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import ReadLog

_STALE_AT_LEAST = 64


@dataclass(slots=True, eq=False)
class LogReader:
    """One `ReadLog` that has not been answered."""

    connection: int
    request_id: int
    request: ReadLog
    deadline_ms: int
    parked: bool = False
    """Its connection has to take what it was sent before."""
    reading: bool = False
    """A helper thread reads for it, or will."""
    gone: bool = False
    """Answered, or the reader is gone."""


class ReaderRoom:
    """All waiting readers of a node."""

    def __init__(self, *, of_front_ends: bool = False) -> None:
        """`of_front_ends`: see `WaitingRoom`."""
        self._of_front_ends = of_front_ends
        self._by_partition: dict[int, dict[LogReader, None]] = {}
        self._by_connection: dict[int, dict[int, LogReader]] = {}
        self._deadlines: list[tuple[int, int, LogReader]] = []
        self._entered = 0
        self._count = 0
        self.awake: set[int] = set()
        """Queues whose readers should be checked."""
        self.deserted: set[int] = set()
        """Queues without waiting readers since the last check; the timing of idle queues takes them from here."""

    def enter(self, reader: LogReader) -> None:
        """Waits from now on; raises where too many do, or the request id is in use."""
        partition_id = reader.request.queue_id
        mine = self._by_connection.get(reader.connection, {})
        others = self._by_partition.get(partition_id, {})
        if reader.request_id in mine:
            raise PenstockError(ErrorCode.BAD_REQUEST, f"request id {reader.request_id} is in use")
        is_shared = self._of_front_ends or reader.connection < 0
        has_too_many = len(mine) >= limits.WAITING_PER_CONNECTION and not is_shared
        if has_too_many or len(others) >= limits.LOG_READERS_WAITING_PER_QUEUE:
            raise PenstockError(
                ErrorCode.TOO_MANY_WAITING,
                f"{len(others)} readers wait on the queue already, {len(mine)} on this connection; the limits are "
                f"{limits.LOG_READERS_WAITING_PER_QUEUE} and {limits.WAITING_PER_CONNECTION}",
            )
        self._by_connection.setdefault(reader.connection, mine)[reader.request_id] = reader
        self._by_partition.setdefault(partition_id, others)[reader] = None
        self._count += 1
        self._entered += 1
        heappush(self._deadlines, (reader.deadline_ms, self._entered, reader))
        if len(self._deadlines) > 2 * self._count + _STALE_AT_LEAST:
            self._deadlines = [row for row in self._deadlines if not row[2].gone]
            heapify(self._deadlines)

    def leave(self, reader: LogReader) -> None:
        """The reader is answered, or gone."""
        reader.gone = True
        mine = self._by_connection.get(reader.connection, {})
        if mine.get(reader.request_id) is not reader:
            return  # it never had to wait
        self._count -= 1
        del mine[reader.request_id]
        if not mine:
            del self._by_connection[reader.connection]
        others = self._by_partition[reader.request.queue_id]
        del others[reader]
        if not others:
            del self._by_partition[reader.request.queue_id]
            self.deserted.add(reader.request.queue_id)

    def of_queue(self, partition_id: int) -> list[LogReader]:
        """Who waits on the queue, in the order of coming."""
        return list(self._by_partition.get(partition_id, ()))

    def is_awaited(self, partition_id: int) -> bool:
        """Whether anybody waits on the queue."""
        return partition_id in self._by_partition

    def wake(self, partition_id: int) -> None:
        """Something of the queue has changed."""
        if partition_id in self._by_partition:
            self.awake.add(partition_id)

    def unpark(self, connection: int) -> None:
        """The connection may be given more."""
        for reader in self._by_connection.get(connection, {}).values():
            if reader.parked:
                reader.parked = False
                self.awake.add(reader.request.queue_id)

    def find(self, connection: int, request_id: int) -> LogReader | None:
        """The reader with that request id, if it still waits."""
        return self._by_connection.get(connection, {}).get(request_id)

    def leave_connection(self, connection: int) -> None:
        """The client is gone."""
        for reader in list(self._by_connection.get(connection, {}).values()):
            self.leave(reader)

    def leave_queue(self, partition_id: int) -> list[LogReader]:
        """The queue is gone; returns who waited on it."""
        self.awake.discard(partition_id)
        readers = self.of_queue(partition_id)
        for reader in readers:
            self.leave(reader)
        return readers

    def timed_out(self, now_ms: int) -> list[LogReader]:
        """Readers whose time is over and for which no helper thread reads; they stay until answered."""
        found = []
        while self._deadlines and (self._deadlines[0][0] <= now_ms or self._deadlines[0][2].gone):
            _, _, reader = heappop(self._deadlines)
            if not reader.gone and not reader.reading:
                found.append(reader)
        return found

    def next_ms(self) -> int | None:
        """When the next reader's time is up."""
        while self._deadlines and self._deadlines[0][2].gone:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None
