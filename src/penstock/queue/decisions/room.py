"""Room for a batch in a queue with limits: whether there is some, and if not, which messages make room by the overflow policy."""

from __future__ import annotations

import re
from itertools import islice

from penstock.model import limits
from penstock.model.batch import Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import Dropped, MoveStarted
from penstock.model.runs import Runs, normalized, pieces_of
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS

ROOM_RECORDS = 4
"""So many records make room for one batch at most. They are written together with it, into the journal files that are ready."""


def make_room(partition: Partition, batch: Batch, now_ms: int, *, may_move: bool) -> list[PendingRecord]:
    """Records that make room for the batch under the queue's limits; raises where there is none to make."""
    settings, table = partition.settings, partition.table
    if settings.max_messages is None and settings.max_bytes is None:
        return []
    moving = table.counts[states.MOVING]
    messages, size = table.messages - moving, table.bytes
    # Adding up what is on its way takes long, and only a queue that is full otherwise needs to know.
    if moving and settings.max_bytes is not None and size + batch.message_bytes() > settings.max_bytes:
        size -= sum(table.size_of(runs) for runs in partition.moves.values())
    over_messages = messages + batch.count - (settings.max_messages or limits.QUEUE_MESSAGES_MAX)
    over_bytes = size + batch.message_bytes() - (settings.max_bytes or limits.QUEUE_BYTES_MAX)
    if over_messages <= 0 and over_bytes <= 0:
        return []
    makes_room = settings.overflow == "drop-oldest" or (settings.overflow == "dead-letter" and may_move)
    pattern = states.RUNS_UNRECEIVED if settings.overflow == "drop-oldest" else states.RUNS_IN[states.READY]
    oldest = _oldest(partition, pattern, over_messages, over_bytes) if makes_room else None
    if oldest is None:
        raise PenstockError(
            ErrorCode.QUEUE_FULL,
            f"queue {partition.name!r} is full: {messages} messages, {size} bytes "
            f"(max_messages {settings.max_messages}, max_bytes {settings.max_bytes}, overflow {settings.overflow})",
        )
    # Each record is a step that is complete: after a crash between two of them the next send makes the room that is missing.
    # One send makes a part of the room where that is much (the limit was lowered): all of its records go to the journal together.
    pieces = list(islice(pieces_of(oldest, limits.RUNS_PER_RECORD), ROOM_RECORDS))
    target = settings.dead_letter_queue
    if settings.overflow == "dead-letter" and target is not None:
        return [PendingRecord(MoveStarted(piece, target, "overflow", now_ms)) for piece in pieces]
    return [PendingRecord(Dropped(piece, now_ms)) for piece in pieces]


def _oldest(
    partition: Partition, pattern: re.Pattern[bytes], over_messages: int, over_bytes: int
) -> Runs | None:
    """The oldest messages in the states of the pattern that are enough, or None."""
    table = partition.table
    runs: Runs = []
    for chunk, start, stop in table.living(table.first_living(), table.next):
        for match in pattern.finditer(chunk.states, start, stop):
            count = 0
            for size in chunk.sizes[match.start() : match.end()]:
                if over_messages <= 0 and over_bytes <= 0:
                    break
                count += 1
                over_messages -= 1
                over_bytes -= size
            if count:
                runs.append(((chunk.number << CHUNK_BITS) + match.start(), count))
            if over_messages <= 0 and over_bytes <= 0:
                return normalized(runs)
    return None
