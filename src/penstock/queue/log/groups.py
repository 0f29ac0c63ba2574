"""Groups of readers of a retained log: their offsets and their members.

An offset is the number of the next message to read. Only `seek` lowers it. A commit of a lower offset succeeds and changes
nothing, because a commit only says that everything before is done.

A generation is the number of the record that made it, including the epoch. So two generations of a queue are never equal,
not even if a group was deleted and created again, or if a failover lost one. A member of an earlier generation can neither
read nor commit.
"""

from __future__ import annotations

import msgspec

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import GroupChanged, GroupRemoved, OffsetCommitted
from penstock.queue.decisions.decision import Decision, PendingRecord
from penstock.queue.log.group_assignment import reader_of
from penstock.queue.log.index import LogIndex
from penstock.queue.log.reader_groups import ReaderGroup
from penstock.queue.partition import Partition


class Membership(msgspec.Struct, frozen=True):
    """What a member may read."""

    generation: int
    shares: list[tuple[int, int]]
    """(partition, offset)."""
    members: int


def join(
    partition: Partition,
    name: str,
    member: str,
    lease_ms: int,
    start: int | None,
    now_ms: int,
    place: tuple[int, int] = (0, 1),
) -> Decision[Membership]:
    """Takes a member in, who may be one already; a new group begins at `start`.

    `place` is the partition's ordinal, and how many partitions the queue has.
    """
    log = retained(partition)
    _check_ordinal(partition, *place)
    _check_name("group", name)
    _check_name("member", member)
    if not limits.LOG_MEMBER_LEASE_MS_MIN <= lease_ms <= limits.LOG_MEMBER_LEASE_MS_MAX:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"lease_ms must be {limits.LOG_MEMBER_LEASE_MS_MIN} to {limits.LOG_MEMBER_LEASE_MS_MAX}, not {lease_ms}",
        )
    group = partition.readers.get(name)
    written: list[PendingRecord] = []
    if group is None:
        offset = log.begin if start is None else start
        _check_room(partition)
        check_offset(partition, log, offset)
        written.append(PendingRecord(OffsetCommitted(name, offset, now_ms)))
        group = ReaderGroup(offset, now_ms)
    members = dict(zip(group.members, group.leases_ms, strict=True))
    if member in members and place == (group.ordinal, group.partitions):
        return Decision((), _membership(group.offset, group.generation, group.reader, member, len(members)))
    if member not in members and len(members) >= limits.LOG_GROUP_MEMBERS:
        raise PenstockError(
            ErrorCode.LIMIT_REACHED, f"group {name!r} has {limits.LOG_GROUP_MEMBERS} members, the limit"
        )
    members.setdefault(member, lease_ms)
    generation = partition.number_of_record(1 + len(written))
    written.append(_changed(name, generation, members, now_ms, place))
    reader = reader_of(list(members), *place)
    return Decision(written, _membership(group.offset, generation, reader, member, len(members)))


def leave(partition: Partition, name: str, gone: set[str], now_ms: int) -> list[PendingRecord]:
    """The members are gone, and what they had goes to others; nothing where none of them is a member."""
    group = partition.readers.get(name)
    if group is None or gone.isdisjoint(group.members):
        return []
    members = {
        member: lease_ms
        for member, lease_ms in zip(group.members, group.leases_ms, strict=True)
        if member not in gone
    }
    return [_changed(name, partition.number_of_record(), members, now_ms, (group.ordinal, group.partitions))]


def commit(
    partition: Partition, name: str, offset: int, member: str, generation: int, now_ms: int
) -> Decision[None]:
    """The group is done with everything before `offset`."""
    log = retained(partition)
    group = partition.readers.get(name)
    if member:
        group = check_member(partition, name, member, generation)
    elif group is not None and group.members:
        raise PenstockError(
            ErrorCode.NOT_A_MEMBER,
            f"group {name!r} of queue {partition.name!r} has {len(group.members)} members: only a member that reads the "
            "partition may commit; join the group, or seek it",
        )
    if group is None:
        _check_name("group", name)
        _check_room(partition)
    elif offset <= group.offset:
        return Decision((), None)
    if not 1 <= offset <= log.next:
        raise beyond_the_end(partition, log, offset)
    return Decision((PendingRecord(OffsetCommitted(name, offset, now_ms)),), None)


def seek(partition: Partition, name: str, offset: int, now_ms: int) -> Decision[ReaderGroup]:
    """Moves the group to `offset`, forward or back. Its members must start there."""
    log = retained(partition)
    group = find(partition, name)
    check_offset(partition, log, offset)
    written = [PendingRecord(OffsetCommitted(name, offset, now_ms))]
    place = group.ordinal, group.partitions
    sought = ReaderGroup(offset, now_ms, group.generation, group.members, group.leases_ms, *place)
    if group.members:
        sought.generation = partition.number_of_record(2)
        members = dict(zip(group.members, group.leases_ms, strict=True))
        written.append(_changed(name, sought.generation, members, now_ms, place))
    return Decision(written, sought)


def remove(partition: Partition, name: str, now_ms: int) -> Decision[None]:
    """Removes the group; refused while a member reads for it."""
    retained(partition)
    group = find(partition, name)
    if group.members:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"group {name!r} has {len(group.members)} members ({group.members[0]!r} is one); it can be deleted when "
            "they have left",
        )
    return Decision((PendingRecord(GroupRemoved(name, now_ms)),), None)


def find(partition: Partition, name: str) -> ReaderGroup:
    """The group of that name; raises where there is none."""
    group = partition.readers.get(name)
    if group is None:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"queue {partition.name!r} has no group {name!r}; joining it or a commit creates it",
        )
    return group


def check_member(partition: Partition, name: str, member: str, generation: int) -> ReaderGroup:
    """Raises unless the log is the member's share, in the group as it is now."""
    group = partition.readers.get(name)
    if group is None or member not in group.members:
        raise PenstockError(
            ErrorCode.NOT_A_MEMBER, f"{member!r} is not (or no longer) a member of group {name!r}; join it"
        )
    if generation != group.generation:
        raise PenstockError(
            ErrorCode.NOT_A_MEMBER,
            f"group {name!r} is at generation {group.generation}, {member!r} at {generation}: members or offsets "
            "have changed; join again",
        )
    if member != group.reader:
        raise PenstockError(
            ErrorCode.NOT_A_MEMBER, f"another member of group {name!r} reads the log; {member!r} stands by"
        )
    return group


def retained(partition: Partition) -> LogIndex:
    """The log of a queue that has one; raises for any other."""
    if partition.log is None:
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            f"queue {partition.name!r} retains no log (consumption 'queue'): receive from it, or create it with "
            "consumption 'log' or 'both'",
        )
    return partition.log


def check_offset(partition: Partition, log: LogIndex, offset: int) -> None:
    """Raises unless the log can be read from the offset on."""
    if offset < log.readable_from:
        raise PenstockError(
            ErrorCode.OFFSET_GONE,
            f"offset {offset} of queue {partition.name!r} is gone: the log begins at {log.begin}",
        )
    if offset > log.next:
        raise beyond_the_end(partition, log, offset)


def beyond_the_end(partition: Partition, log: LogIndex, offset: int) -> PenstockError:
    """The error for an offset that was never assigned."""
    return PenstockError(
        ErrorCode.BAD_REQUEST,
        f"offset {offset} is none of queue {partition.name!r}, whose log is from {log.begin} to {log.next}",
    )


def _membership(offset: int, generation: int, reader: str, member: str, members: int) -> Membership:
    return Membership(generation, [(0, offset)] if member == reader else [], members)


def _changed(
    name: str, generation: int, members: dict[str, int], now_ms: int, place: tuple[int, int]
) -> PendingRecord:
    return PendingRecord(
        GroupChanged(name, generation, list(members), now_ms, list(members.values()), *place)
    )


def _check_ordinal(partition: Partition, ordinal: int, partitions: int) -> None:
    if not 0 <= ordinal < partitions <= limits.PARTITIONS_PER_QUEUE:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"partition {ordinal} of {partitions}: queue {partition.name!r} has no such partition",
        )


def _check_room(partition: Partition) -> None:
    if len(partition.readers) >= limits.LOG_GROUPS_PER_QUEUE:
        raise PenstockError(
            ErrorCode.LIMIT_REACHED,
            f"queue {partition.name!r} has {limits.LOG_GROUPS_PER_QUEUE} groups of readers, the limit; delete some",
        )


def _check_name(what: str, name: str) -> None:
    if not 1 <= len(name) <= limits.LOG_GROUP_NAME_CHARACTERS:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"the name of a {what} has 1 to {limits.LOG_GROUP_NAME_CHARACTERS} characters, not {len(name)}",
        )
