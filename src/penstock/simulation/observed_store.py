"""A store that also reports its appends to the simulation, for a second copy of the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.model.batch import Buffer
from penstock.storage.disk import Disk
from penstock.storage.entry import RECORD
from penstock.storage.flush import Flush
from penstock.storage.opening import OpenedDirectory
from penstock.storage.options import StorageOptions
from penstock.storage.store import Store


class AppendedRecord(NamedTuple):
    """A record as the node wrote it."""

    position: int
    partition: int
    number: int
    """Its place among the records of its partition."""
    head: bytes
    payload: bytes


class ObservedStore(Store):
    """The real store; `on_append` sees every append after it was made, `before_append` may raise before it is."""

    before_append: Callable[[int, int, bytes, bool], None] | None = None
    """Asked with the kind of the entry, the partition, the head, and whether it may use the journal's reserve."""
    reserve_begun: Callable[[], None] = staticmethod(lambda: None)
    """Called when the journal continues in the last prepared file, which sends may not use, and deletes may."""
    on_append: Callable[[AppendedRecord], None] | None = None
    is_foreign: Callable[[int], bool] = staticmethod(lambda partition: False)
    """Whether an append to a partition comes from another node."""

    def __init__(self, disk: Disk, options: StorageOptions, opened: OpenedDirectory) -> None:
        super().__init__(disk, options, opened)
        self._foreign_bytes = [0, 0]
        """In the flush under way, and since."""
        self._moved_bytes = [0, 0]
        """The same of what was appended for moves between queues."""
        self._assured = 0
        """The number of appends for which room was confirmed."""
        put, rotate = self._journal._put, self._journal.rotate

        def put_if_allowed(
            kind: int, partition: int, index: int, head: bytes, payload: Sequence[Buffer], *, reserve: bool
        ) -> int:
            if self._assured:
                self._assured -= 1
            elif self.before_append is not None:
                self.before_append(kind, partition, head, reserve)
            before = self.unflushed_bytes
            position = put(kind, partition, index, head, payload, reserve=reserve)
            if kind != RECORD or self.is_foreign(partition):
                self._foreign_bytes[1] += self.unflushed_bytes - before
            return position

        def go_on() -> None:
            rotate()
            if not self._journal._prepared:
                self.reserve_begun()

        self._journal._put, self._journal.rotate = put_if_allowed, go_on  # type: ignore[method-assign]  # of this journal alone

    @property
    def foreign_bytes(self) -> int:
        """Bytes from other nodes that wait for the disk: the windows of streams bound them."""
        return self._foreign_bytes[0] + self._foreign_bytes[1]

    @property
    def moved_bytes(self) -> int:
        """Bytes of moves between queues that wait for the disk."""
        return self._moved_bytes[0] + self._moved_bytes[1]

    def take_flush(self) -> Flush | None:
        flush = super().take_flush()
        if flush is not None:
            self._foreign_bytes = [self.foreign_bytes, 0]
            self._moved_bytes = [self.moved_bytes, 0]
        return flush

    def flushed(self, flush: Flush) -> int:
        self._foreign_bytes[0] = self._moved_bytes[0] = 0
        return super().flushed(flush)

    def check_room(
        self, partition: int, records: Sequence[tuple[bytes, Sequence[Buffer]]], *, reserve: bool
    ) -> None:
        for head, _ in records:
            if self.before_append is not None:
                self.before_append(RECORD, partition, head, reserve)
        super().check_room(partition, records, reserve=reserve)
        self._assured = len(records)

    def append(
        self, partition: int, index: int, head: bytes, payload: Sequence[Buffer] = (), *, reserve: bool = True
    ) -> int:
        before = self.unflushed_bytes
        position = super().append(partition, index, head, payload, reserve=reserve)
        if payload and reserve and not self.is_foreign(partition):
            # With what the entry costs beside the messages: they may move one by one.
            self._moved_bytes[1] += self.unflushed_bytes - before
        if self.on_append is not None:
            self.on_append(AppendedRecord(position, partition, index, head, b"".join(payload)))
        return position
