"""Consumer groups on the node: their requests, and the leases of their members.

Records contain the members; the permitted silence of each is timed here. After a restart all members get a fresh lease,
because the node does not know for how long it was down.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from penstock.backend.node.parts import NodeParts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.queue.log import groups as log_groups
from penstock.queue.log.groups import retained
from penstock.queue.log.index import LogIndex
from penstock.queue.log.reader_groups import ReaderGroup
from penstock.queue.partition import Partition
from penstock.wire.log_messages import (
    CommitOffset,
    DeleteGroup,
    GroupDescription,
    GroupList,
    GroupMembership,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    ReadLog,
    SeekGroup,
)
from penstock.wire.messages import Done

_RETRY_MS = 100
_GROUPS_PER_PAGE = 1_000

GroupRequest = CommitOffset | JoinGroup | LeaveGroup | ListGroups | SeekGroup | DeleteGroup


def restore(parts: NodeParts, partitions: Iterable[Partition], now_ms: int) -> None:
    """After a start, or a change of the primary: every member gets a fresh lease."""
    for partition in partitions:
        for name in partition.readers.names():
            group = partition.readers.get(name)
            assert group is not None
            for member, lease_ms in zip(group.members, group.leases_ms, strict=True):
                parts.members.renew((partition.partition_id, name, member), now_ms + lease_ms)


def end_leases(parts: NodeParts, now_ms: int) -> None:
    """Removes members that were silent for longer than their lease."""
    silent: dict[tuple[int, str], set[str]] = {}
    for partition_id, name, member in parts.members.take_due(now_ms):
        silent.setdefault((partition_id, name), set()).add(member)
    for (partition_id, name), gone in silent.items():
        try:
            partition = parts.catalogue.usable(partition_id)
        except PenstockError:  # deleted, or fenced: then nothing is written to it
            continue
        try:
            parts.write(partition, log_groups.leave(partition, name, gone, now_ms))
        except PenstockError:  # no room in the journal
            for member in gone:
                parts.members.renew((partition_id, name, member), now_ms + _RETRY_MS)


def answer_group(
    parts: NodeParts, request: GroupRequest, now_ms: int
) -> Done | GroupMembership | GroupList | GroupDescription:
    """Does what is asked of a group."""
    partition = parts.catalogue.usable(request.queue_id)
    end_leases(parts, now_ms)
    match request:
        case CommitOffset():
            group, member, generation = request.group, request.member, request.generation
            parts.carry_out(
                partition, log_groups.commit(partition, group, request.offset, member, generation, now_ms)
            )
            if member:
                _renew(parts, partition, group, member, now_ms)
            return Done()
        case JoinGroup():
            return _join(parts, partition, request, now_ms)
        case LeaveGroup():
            retained(partition)
            parts.write(partition, log_groups.leave(partition, request.group, {request.member}, now_ms))
            parts.members.forget((partition.partition_id, request.group, request.member))
            return Done()
        case ListGroups():
            return _list(partition, request, now_ms)
        case SeekGroup():
            return _seek(parts, partition, request, now_ms)
        case DeleteGroup():
            parts.carry_out(partition, log_groups.remove(partition, request.group, now_ms))
            return Done()


def renewed_wait_ms(parts: NodeParts, request: ReadLog, now_ms: int) -> int:
    """Renews the lease of a reader that is a member; returns how long it may wait.

    Not for longer than half its lease: then it is answered, asks again and is known to live.
    """
    if not request.group:
        return request.wait_ms
    end_leases(parts, now_ms)
    partition = parts.catalogue.usable(request.queue_id)
    retained(partition)
    log_groups.check_member(partition, request.group, request.member, request.generation)
    return min(request.wait_ms, _renew(parts, partition, request.group, request.member, now_ms) // 2)


def _join(parts: NodeParts, partition: Partition, request: JoinGroup, now_ms: int) -> GroupMembership:
    membership = parts.carry_out(
        partition,
        log_groups.join(
            partition,
            request.group,
            request.member,
            request.lease_ms,
            request.start,
            now_ms,
            (request.partition, request.partitions),
        ),
    )
    lease_ms = _renew(parts, partition, request.group, request.member, now_ms)
    return GroupMembership(membership.generation, membership.shares, membership.members, lease_ms)


def _renew(parts: NodeParts, partition: Partition, name: str, member: str, now_ms: int) -> int:
    """The member lives; returns how long its lease is."""
    group = log_groups.find(partition, name)
    lease_ms = group.leases_ms[group.members.index(member)]
    parts.members.renew((partition.partition_id, name, member), now_ms + lease_ms)
    return lease_ms


def _list(partition: Partition, request: ListGroups, now_ms: int) -> GroupList:
    log = retained(partition)
    names = partition.readers.names()
    start = bisect_right(names, request.after) if request.after else 0
    limit = max(1, min(request.limit, _GROUPS_PER_PAGE))
    page = [
        _described(log, name, log_groups.find(partition, name), now_ms)
        for name in names[start : start + limit]
    ]
    return GroupList(page, start + limit < len(names))


def _seek(parts: NodeParts, partition: Partition, request: SeekGroup, now_ms: int) -> GroupDescription:
    log = retained(partition)
    if (request.offset is None) == (request.time_ms is None):
        raise PenstockError(ErrorCode.BAD_REQUEST, "a seek needs an offset or a time, not both")
    offset = request.offset
    if offset is None:
        assert request.time_ms is not None
        offset = log.first_since(request.time_ms)
    sought = parts.carry_out(partition, log_groups.seek(partition, request.group, offset, now_ms))
    return _described(log, request.group, sought, now_ms)


def _described(log: LogIndex, name: str, group: ReaderGroup, now_ms: int) -> GroupDescription:
    following = max(group.offset, log.begin)
    waits_since_ms = log.sent_ms(following)
    return GroupDescription(
        name,
        group.offset,
        group.committed_ms,
        log.messages_from(following),
        max(0, now_ms - waits_since_ms) if waits_since_ms is not None else 0,
        group.generation,
        list(group.members),
        group.reader,
    )
