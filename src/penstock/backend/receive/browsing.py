"""Reads without leasing, and redrives: peek, filters, redrive."""

from __future__ import annotations

import msgspec

from penstock.backend.node.parts import NodeParts
from penstock.backend.receive.bodies import ColdReadError, StoredSlice, delivered
from penstock.model import limits
from penstock.model.batch import GROUPS, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.move_target import aimed_at
from penstock.model.reserved_queues import check_not_reserved
from penstock.model.runs import Runs, intersection, normalized
from penstock.queue.decisions import move as moving
from penstock.queue.decisions.consumption import check_has_queue
from penstock.queue.partition import Partition
from penstock.queue.state import states
from penstock.wire.messages import DeliveredBatch, MessageState, Peek, Peeked, PeekFilter, Redrive, Redriven

_STATE_NAMES: dict[int, MessageState] = {
    states.READY: "ready",
    states.LEASED: "leased",
    states.DELAYED: "delayed",
    states.MOVING: "moving",
    states.HELD: "held",
}


def peek(parts: NodeParts, request: Peek, now_ms: int) -> tuple[Peeked, list[Buffer]]:
    """Messages from a sequence number on that pass the filter."""
    partition = parts.catalogue.usable(request.queue_id)
    check_has_queue(partition)
    most = max(1, min(request.max_messages, limits.PEEK_MESSAGES))
    found, following = _scan(parts, partition, request.start, most, request.filter, None)
    heads, body = delivered(partition, found, 0)
    named = [_with_states(partition, head) for head in heads]
    return Peeked(named, following), body


def redrive(parts: NodeParts, request: Redrive, now_ms: int) -> Redriven:
    """Sends ready messages of a dead-letter queue on their way, each to its target."""
    partition = parts.catalogue.usable(request.queue_id)
    check_has_queue(partition)
    if request.target is not None:
        check_not_reserved(request.target, "redriven to")
        if request.target == partition.name:
            raise PenstockError(ErrorCode.BAD_REQUEST, "a queue cannot be redriven to itself")
        if not parts.has_queue(request.target):
            parts.catalogue.find(request.target)
    most = max(1, min(request.max_messages, limits.MOVE_MESSAGES))
    wanted = normalized(request.runs) if request.runs is not None else None
    chosen, following = _scan(parts, partition, request.start, most, request.filter, wanted, ready_only=True)
    by_target: dict[str, Runs] = {}
    for piece in chosen:
        target = request.target or _way_back(parts, piece)
        if target is not None:
            by_target.setdefault(target, []).append((piece.first, piece.messages))
    moved = 0
    for target, runs in by_target.items():
        incarnation = parts.model.incarnation_of(target)
        aim = aimed_at(target, incarnation) if incarnation is not None else target
        moved += parts.carry_out(partition, moving.start_move(partition, runs, aim, now_ms))
    return Redriven(moved, following)


def _way_back(parts: NodeParts, piece: StoredSlice) -> str | None:
    """The queue a dead letter died in; None if it never died, or is known to have nowhere to go."""
    origin = piece.sent.origin
    if origin is None:
        return None
    if origin.reason == "queue-deleted" and not parts.has_queue(origin.source):
        return None
    return origin.source


def _scan(
    parts: NodeParts,
    partition: Partition,
    start: int,
    most: int,
    wanted: PeekFilter | None,
    among: Runs | None,
    *,
    ready_only: bool = False,
) -> tuple[list[StoredSlice], int | None]:
    """Up to `most` living messages that pass the filter, and where to continue."""
    table = partition.table
    pattern = states.RUNS_IN[states.READY] if ready_only else states.RUNS_LIVING
    scan = limits.PEEK_SCAN_MESSAGES if wanted is not None or among is not None else most
    start = max(start, 1)
    candidates = table.runs_in(pattern, start, table.next, scan)
    scanned = sum(count for _, count in candidates)
    end = candidates[-1][0] + candidates[-1][1] if candidates else table.next
    if among is not None:
        candidates = intersection(candidates, among)
    found: list[StoredSlice] = []
    room, room_bytes = most, limits.PEEK_BYTES
    following = start
    try:
        for piece in parts.bodies.each(partition, candidates):
            for match in _matching(partition, piece, wanted):
                if not room or (found and match.size() > room_bytes):
                    return found, match.first
                cut = match._replace(messages=min(match.messages, room))
                found.append(cut)
                room -= cut.messages
                room_bytes -= cut.size()
                if cut.messages < match.messages:
                    return found, cut.first + cut.messages
            following = piece.first + piece.messages
    except ColdReadError:
        if following == start:
            raise
        return found, following  # only batches in memory; the rest with the next request
    return found, end if scanned >= scan and end < table.next else None


def _matching(partition: Partition, piece: StoredSlice, wanted: PeekFilter | None) -> list[StoredSlice]:
    """The parts of a slice whose messages pass the filter."""
    if wanted is None:
        return [piece]
    origin = piece.sent.origin
    if wanted.reason is not None and (origin is None or origin.reason != wanted.reason):
        return []
    if wanted.source is not None and (origin is None or origin.source != wanted.source):
        return []
    batch = piece.batch
    base = piece.first - piece.sent.first
    groups = batch.names(GROUPS) if wanted.group is not None else None
    passing: list[StoredSlice] = []
    for offset in range(piece.messages):
        sequence, index = piece.first + offset, base + offset
        state = _STATE_NAMES.get(partition.table.state(sequence) & states.STATE_BITS)
        if wanted.states is not None and state not in wanted.states:
            continue
        if wanted.group is not None and (groups is None or groups[index] != wanted.group):
            continue
        if wanted.body_contains is not None and wanted.body_contains not in bytes(batch.body(index)):
            continue
        if wanted.attributes and not _attributes_pass(batch.attributes(index), wanted.attributes):
            continue
        passing.append(piece._replace(first=sequence, messages=1))
    return passing


def _attributes_pass(encoded: bytes, wanted: dict[str, str]) -> bool:
    if not encoded:
        return False
    try:
        attributes = msgspec.msgpack.decode(encoded)
        return isinstance(attributes, dict) and all(
            str(attributes.get(name)) == value for name, value in wanted.items()
        )
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False  # writing out what nests deeply goes deeper than reading it


def _with_states(partition: Partition, head: DeliveredBatch) -> DeliveredBatch:
    names = [
        _STATE_NAMES[partition.table.state(sequence) & states.STATE_BITS]
        for sequence in range(head.first, head.first + head.count)
    ]
    return msgspec.structs.replace(head, states=names)
