"""The state of the groups that read a retained log. `log/groups.py` decides; records change it."""

from __future__ import annotations

import msgspec

from penstock.model.records import GroupChanged, GroupRemoved, OffsetCommitted
from penstock.queue.log.group_assignment import reader_of


class GroupImage(msgspec.Struct, frozen=True, array_like=True):
    """A group in the form of a snapshot."""

    name: str
    offset: int
    committed_ms: int
    generation: int
    members: list[str]
    leases_ms: list[int]
    ordinal: int = 0
    partitions: int = 1


class ReaderGroup:
    """The offset and the members of a group."""

    __slots__ = (
        "_reader",
        "committed_ms",
        "generation",
        "leases_ms",
        "members",
        "offset",
        "ordinal",
        "partitions",
    )

    def __init__(
        self,
        offset: int,
        committed_ms: int,
        generation: int = 0,
        members: list[str] | None = None,
        leases_ms: list[int] | None = None,
        ordinal: int = 0,
        partitions: int = 1,
    ) -> None:
        self.offset = offset
        self.committed_ms = committed_ms
        self.generation = generation
        self.members = members if members is not None else []
        """In the order in which they joined."""
        self.leases_ms = leases_ms if leases_ms is not None else []
        """How long the lease of each lasts from its last word on."""
        self.ordinal = ordinal
        self.partitions = partitions
        """This is one partition of so many of its queue, as far as the last member knew."""
        self._reader: str | None = None

    @property
    def reader(self) -> str:
        """The member who has the share; empty where there are none."""
        if self._reader is None:
            self._reader = reader_of(self.members, self.ordinal, self.partitions)
        return self._reader

    def change(self, record: GroupChanged) -> None:
        """Has other members, or another generation, from now on."""
        self.generation = record.generation
        self.members, self.leases_ms = list(record.members), list(record.leases_ms)
        self.ordinal, self.partitions = record.ordinal, record.partitions
        self._reader = None


class ReaderGroups:
    """All groups of a log by name."""

    def __init__(self) -> None:
        self._groups: dict[str, ReaderGroup] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, name: str) -> ReaderGroup | None:
        """The group of that name."""
        return self._groups.get(name)

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._groups)

    def apply(self, record: OffsetCommitted | GroupChanged | GroupRemoved) -> None:
        """Makes the groups what the record says."""
        match record:
            case OffsetCommitted():
                group = self._groups.get(record.group)
                if group is None:
                    self._groups[record.group] = ReaderGroup(record.offset, record.at_ms)
                else:
                    group.offset, group.committed_ms = record.offset, record.at_ms
            case GroupChanged():
                self._groups[record.group].change(record)
            case GroupRemoved():
                self._groups.pop(record.group, None)

    def dump(self) -> list[GroupImage]:
        """For the snapshot."""
        return [
            GroupImage(
                name,
                group.offset,
                group.committed_ms,
                group.generation,
                group.members,
                group.leases_ms,
                group.ordinal,
                group.partitions,
            )
            for name, group in self._groups.items()
        ]

    def load(self, images: list[GroupImage]) -> None:
        """Some groups from the snapshot."""
        for image in images:
            self._groups[image.name] = ReaderGroup(
                image.offset,
                image.committed_ms,
                image.generation,
                image.members,
                image.leases_ms,
                image.ordinal,
                image.partitions,
            )
