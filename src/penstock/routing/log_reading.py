"""Routing what is about a retained log: an offset says by its ordinal which partition it is of."""

from __future__ import annotations

import msgspec

from penstock.cluster.layout import QueueEntry
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing import outward_answers
from penstock.routing.context import RoutingContext, partition_of
from penstock.routing.numbers import inward, outward
from penstock.routing.steps import Ask, Reply, Steps, ask
from penstock.wire.messages import (
    Answer,
    CommitOffset,
    DeleteGroup,
    Done,
    FindOffset,
    GroupDescription,
    GroupList,
    GroupMembership,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    LogBounds,
    LogSlice,
    ReadLog,
    SeekGroup,
)

GroupRequest = JoinGroup | LeaveGroup | ListGroups | SeekGroup | DeleteGroup
_ANSWERS: dict[type, type[Answer]] = {
    JoinGroup: GroupMembership,
    LeaveGroup: Done,
    ListGroups: GroupList,
    SeekGroup: GroupDescription,
    DeleteGroup: Done,
}


def read_log(context: RoutingContext, request: ReadLog) -> Steps[Reply]:
    """A slice of the log of one partition."""
    queue = context.queue(request.queue_id)
    ordinal, start = inward(request.start)
    partition = partition_of(queue, ordinal)
    asked = msgspec.structs.replace(request, queue_id=partition, start=start)
    given, body = yield from ask(Ask(partition, asked), LogSlice)
    return Reply(outward_answers.log_slice(given, ordinal), body)


def find_offset(context: RoutingContext, request: FindOffset) -> Steps[Reply]:
    """Where the log begins and ends, and what was looked for."""
    queue = context.queue(request.queue_id)
    ordinal = request.partition
    partition = partition_of(queue, ordinal)
    given, _ = yield from ask(Ask(partition, FindOffset(partition, request.time_ms)), LogBounds)
    return Reply(
        LogBounds(outward(ordinal, given.begin), outward(ordinal, given.end), outward(ordinal, given.found))
    )


def commit(context: RoutingContext, request: CommitOffset) -> Steps[Reply]:
    """A group is done with everything before an offset of one partition."""
    queue = context.queue(request.queue_id)
    ordinal, offset = inward(request.offset)
    partition = partition_of(queue, ordinal)
    asked = msgspec.structs.replace(request, queue_id=partition, offset=offset)
    done, _ = yield from ask(Ask(partition, asked), Done)
    return Reply(done)


def group(context: RoutingContext, request: GroupRequest) -> Steps[Reply]:
    """What is about a group as a whole."""
    queue = context.queue(request.queue_id)
    partition = _only_partition(queue)
    asked = msgspec.structs.replace(request, queue_id=partition)
    answer, _ = yield from ask(Ask(partition, asked), _ANSWERS[type(request)])
    return Reply(answer)


def _only_partition(queue: QueueEntry) -> int:
    if len(queue.partitions) > 1:
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            f"queue {queue.name!r} has {len(queue.partitions)} partitions, and groups of readers are for logs of one; "
            "read its partitions by their offsets, or make the log with one partition",
        )
    return queue.partitions[0]
