"""Routes requests for a retained log: the ordinal in an offset names the partition."""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import QueueEntry
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing import outward_answers
from penstock.routing.context import RoutingContext, partition_of
from penstock.routing.numbers import inward, outward
from penstock.routing.unheard import known
from penstock.steps.asking import answer_to
from penstock.steps.step import Ask, Reply, Steps
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
    LocateLog,
    LogAddress,
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
    queue = yield from known(context, request.queue_id)
    ordinal, start = inward(request.start)
    partition = partition_of(queue, ordinal)
    asked = msgspec.structs.replace(request, queue_id=partition, start=start)
    given, body = yield from answer_to(Ask(asked, partition=partition), LogSlice)
    return Reply(outward_answers.log_slice(given, ordinal), body)


def locate(context: RoutingContext, request: LocateLog) -> Steps[Reply]:
    """The address at which a partition's log can be read without a front end, and the ticket for it."""
    queue = yield from known(context, request.queue_id)
    partition = partition_of(queue, request.partition)
    address, offer = context.map.reader_address(partition), context.offer
    if offer is None or not address:
        return Reply(LogAddress())
    ticket = offer.seal.issue(partition, context.now_ms(), request.holder)
    host = address.rpartition(":")[0].strip("[]")
    return Reply(LogAddress(address, ticket, partition, offer.authority(), offer.certified_name(host)))


def find_offset(context: RoutingContext, request: FindOffset) -> Steps[Reply]:
    """The ends of the log, and the offset that was looked for."""
    queue = yield from known(context, request.queue_id)
    ordinal = request.partition
    partition = partition_of(queue, ordinal)
    given, _ = yield from answer_to(
        Ask(FindOffset(partition, request.time_ms), partition=partition), LogBounds
    )
    return Reply(
        LogBounds(
            outward(ordinal, given.begin),
            outward(ordinal, given.end),
            outward(ordinal, given.found),
            [(outward(ordinal, start), outward(ordinal, end)) for start, end in given.gaps],
        )
    )


def commit(context: RoutingContext, request: CommitOffset) -> Steps[Reply]:
    """A group is done with everything before an offset of one partition."""
    queue = yield from known(context, request.queue_id)
    ordinal, offset = inward(request.offset)
    partition = partition_of(queue, ordinal)
    asked = msgspec.structs.replace(request, queue_id=partition, offset=offset)
    done, _ = yield from answer_to(Ask(asked, partition=partition), Done)
    return Reply(done)


def group(context: RoutingContext, request: GroupRequest) -> Steps[Reply]:
    """A group request in one partition; the client combines the partitions."""
    queue = yield from known(context, request.queue_id)
    ordinal = request.partition
    partition = partition_of(queue, ordinal)
    answer, _ = yield from answer_to(
        Ask(_inward(request, queue, partition), partition=partition), _ANSWERS[type(request)]
    )
    return Reply(_outward(answer, ordinal))


def _inward(request: GroupRequest, queue: QueueEntry, partition: int) -> GroupRequest:
    """The request as the node of the partition takes it."""
    match request:
        case JoinGroup():
            start = None if request.start is None else _within(request.start, request.partition)
            count = len(queue.partitions)
            return msgspec.structs.replace(request, queue_id=partition, start=start, partitions=count)
        case SeekGroup():
            offset = None if request.offset is None else _within(request.offset, request.partition)
            return msgspec.structs.replace(request, queue_id=partition, offset=offset, partition=0)
        case _:
            return msgspec.structs.replace(request, queue_id=partition, partition=0)


def _within(number: int, ordinal: int) -> int:
    """The number in the partition that is named; raises where it is of another one."""
    of, within = inward(number)
    if of != ordinal:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"number {number} belongs to partition {of}, and the request is for partition {ordinal}",
        )
    return within


def _outward(answer: Answer, ordinal: int) -> Answer:
    """The answer with the numbers that clients see."""
    match answer:
        case GroupMembership():
            shares = [(ordinal, outward(ordinal, offset)) for _, offset in answer.shares]
            return msgspec.structs.replace(answer, shares=shares)
        case GroupDescription():
            return msgspec.structs.replace(answer, offset=outward(ordinal, answer.offset))
        case GroupList() if ordinal:
            groups = [
                msgspec.structs.replace(one, offset=outward(ordinal, one.offset)) for one in answer.groups
            ]
            return GroupList(groups, answer.more)
        case _:
            return answer
