"""The catalogue: the queues of this node, by name and by id, and which of them are being deleted or damaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from penstock.model.document import DocumentReader
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.queue_owner import is_owned
from penstock.model.records import CatalogueRecord, QueueCreated, QueueDeleted, QueueRemoved
from penstock.model.settings import QueueSettings
from penstock.queue.partition import Partition


class CatalogueImage(msgspec.Struct, array_like=True):
    """The catalogue in a snapshot, without the partitions."""

    index: int
    next_id: int
    queues: list[tuple[int, str, QueueSettings, int, bool]]
    """(id, name, settings when created, created, deleting)."""


_QUEUES_AT_ONCE = 64

_encoder = msgspec.msgpack.Encoder()
_reader: DocumentReader[CatalogueImage] = DocumentReader(CatalogueImage, "msgpack")


class Catalogue:
    """The queues of a node. Ids rise and are never used again: an id is an incarnation."""

    def __init__(self) -> None:
        self.next_id = 1
        self.partitions: dict[int, Partition] = {}
        self.names: dict[str, int] = {}
        self._namesakes: dict[str, list[int]] = {}
        """In a cluster: earlier queues of a name that this node has something of too."""
        self.deleting: set[int] = set()
        self.damage: dict[int, str] = {}
        self.serves: set[int] | None = None
        """In a cluster: the partitions that this node leads and serves; None: it is alone and serves all."""

    def apply(self, record: CatalogueRecord) -> None:
        """Makes the catalogue what the record says."""
        match record:
            case QueueCreated():
                self.next_id = max(self.next_id, record.partition_id + 1)
                self.partitions[record.partition_id] = Partition(
                    record.partition_id, record.name, record.settings, record.at_ms
                )
                self._name(record.name, record.partition_id)
            case QueueDeleted():
                self._unname(self.partitions[record.partition_id].name, record.partition_id)
                self.deleting.add(record.partition_id)
            case QueueRemoved():
                self.partitions.pop(record.partition_id, None)
                self.deleting.discard(record.partition_id)
                self.damage.pop(record.partition_id, None)

    def _name(self, name: str, partition_id: int) -> None:
        """A name means its latest queue. In a cluster a node may hold several: of two that are created at once, one is given
        up, and messages may still have to leave one that was deleted.
        """
        present = self.names.get(name)
        if present is not None and present != partition_id:
            self._namesakes.setdefault(name, []).append(min(present, partition_id))
        self.names[name] = max(present or 0, partition_id)

    def _unname(self, name: str, partition_id: int) -> None:
        others = self._namesakes.get(name, [])
        if partition_id in others:
            others.remove(partition_id)
        elif self.names.get(name) == partition_id:
            del self.names[name]
            if others:
                self.names[name] = max(others)
                others.remove(self.names[name])
        if not others:
            self._namesakes.pop(name, None)

    def named(self, name: str) -> Partition | None:
        """The queue of that name, damaged or not."""
        partition_id = self.names.get(name)
        return self.partitions[partition_id] if partition_id is not None else None

    def find(self, name: str, partition_id: int = 0) -> Partition:
        """The queue of that name, and of that id where one is given; raises if there is none."""
        partition = self.partitions.get(partition_id) if partition_id else self.named(name)
        if partition is None or partition.name != name or partition_id in self.deleting:
            raise PenstockError(ErrorCode.QUEUE_NOT_FOUND, f"there is no queue {name!r}")
        return partition

    def usable(self, partition_id: int) -> Partition:
        """The queue with that id; raises if it is gone or fenced."""
        partition = self.partitions.get(partition_id)
        if self.serves is not None and partition_id not in self.serves:
            raise PenstockError(
                ErrorCode.NOT_PRIMARY,
                f"this node is not the primary of partition {partition_id}; look up its primary",
            )
        if partition is None or partition_id in self.deleting:
            raise PenstockError(
                ErrorCode.QUEUE_NOT_FOUND, f"there is no queue with id {partition_id}; look it up again"
            )
        if self.damage and partition_id in self.damage:
            raise PenstockError(
                ErrorCode.QUEUE_DAMAGED, f"queue {partition.name!r} is fenced: {self.damage[partition_id]}"
            )
        return partition

    def is_closed(self, partition_id: int) -> bool:
        """Whether the queue must not be changed: it is fenced, or another node leads it."""
        return partition_id in self.damage or (self.serves is not None and partition_id not in self.serves)

    def fence(self, partition_id: int, what: str) -> None:
        """The queue's stored data is damaged: it is not served until it is repaired."""
        if partition_id in self.partitions:
            self.damage.setdefault(partition_id, what)

    def damages(self, owners: Sequence[str] = ()) -> list[str]:
        """The damage of queues of these owners, or of all, one sentence for each queue."""
        named = [(self.partitions[partition_id].name, what) for partition_id, what in self.damage.items()]
        return [f"queue {name!r}: {what}" for name, what in named if is_owned(name, owners)]

    def last_stamp_us(self) -> int:
        """The last time on record in any queue ordered by the clock."""
        return max(
            (
                max(partition.watermark_us, partition.commit_wait.last_us)
                for partition in self.partitions.values()
                if partition.settings.ordering == "clock"
            ),
            default=0,
        )

    def capture(self, index: int) -> Iterator[bytes]:
        """For the snapshot: the catalogue as it is when the first piece is asked for; pieces of a `CatalogueImage`."""
        partitions, deleting = list(self.partitions.values()), set(self.deleting)
        beginning = _encoder.encode((index, self.next_id, ()))
        yield beginning[:-1] + b"\xdd" + len(partitions).to_bytes(4, "big")
        for start in range(0, len(partitions), _QUEUES_AT_ONCE):
            yield b"".join(
                _encoder.encode(
                    (p.partition_id, p.name, p.settings, p.created_ms, p.partition_id in deleting)
                )
                for p in partitions[start : start + _QUEUES_AT_ONCE]
            )

    def load(self, data: bytes | memoryview) -> int:
        """Loads queues without their messages from a snapshot; returns the index of the catalogue."""
        image = _reader.decode(data)
        self.next_id = image.next_id
        for partition_id, name, settings, created_ms, deleting in image.queues:
            self.partitions[partition_id] = Partition(partition_id, name, settings, created_ms)
            if deleting:
                self.deleting.add(partition_id)
            else:
                self._name(name, partition_id)
        return image.index
