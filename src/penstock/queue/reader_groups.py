"""What is remembered of the groups that read a retained log; `log_groups` decides, records change it."""

from __future__ import annotations

from penstock.model.records import GroupChanged, GroupRemoved, OffsetCommitted

GroupImage = tuple[str, int, int, int, list[str], list[int]]
"""Name, offset, committed, generation, members, leases."""


class ReaderGroup:
    """Where a group goes on and who belongs to it."""

    __slots__ = ("committed_ms", "generation", "leases_ms", "members", "offset")

    def __init__(
        self,
        offset: int,
        committed_ms: int,
        generation: int = 0,
        members: list[str] | None = None,
        leases_ms: list[int] | None = None,
    ) -> None:
        self.offset = offset
        self.committed_ms = committed_ms
        self.generation = generation
        self.members = members if members is not None else []
        """In the order in which they joined."""
        self.leases_ms = leases_ms if leases_ms is not None else []
        """How long the lease of each lasts from its last word on."""


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
                group = self._groups[record.group]
                group.generation = record.generation
                group.members, group.leases_ms = list(record.members), list(record.leases_ms)
            case GroupRemoved():
                self._groups.pop(record.group, None)

    def dump(self) -> list[GroupImage]:
        """For the snapshot."""
        return [
            (name, group.offset, group.committed_ms, group.generation, group.members, group.leases_ms)
            for name, group in self._groups.items()
        ]

    def load(self, dumped: list[GroupImage]) -> None:
        """From the snapshot."""
        self._groups = {row[0]: ReaderGroup(*row[1:]) for row in dumped}
