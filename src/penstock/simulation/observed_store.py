"""A store that also tells the simulation what is appended to it, so that a second copy of the state can be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.model.batch import Buffer
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
    """The real store; `observer` sees every append after it was made."""

    observer: Callable[[AppendedRecord], None] | None = None
    moved_bytes: int = 0
    """Appended for moves between queues since it was last set to 0."""

    def append(
        self, partition: int, index: int, head: bytes, payload: Sequence[Buffer] = (), *, reserve: bool = True
    ) -> int:
        before = self.unflushed_bytes
        position = super().append(partition, index, head, payload, reserve=reserve)
        if payload and reserve:  # with what the entry costs beside the messages: they may move one by one
            self.moved_bytes += self.unflushed_bytes - before
        if self.observer is not None:
            self.observer(AppendedRecord(position, partition, index, head, b"".join(payload)))
        return position
