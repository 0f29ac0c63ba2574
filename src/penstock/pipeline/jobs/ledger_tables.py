"""The tables of the job `ledger`."""

from __future__ import annotations

from penstock.pipeline.jobs.job import gap_table
from penstock.pipeline.jobs.latency import Buckets
from penstock.pipeline.warehouse.table import WarehouseColumn, WarehouseTable, column

DWELL = Buckets("dwell", 1, 1.55, 50, "milliseconds")
PROCESSING = Buckets("processing", 1, 1.55, 50, "milliseconds")
"""From a millisecond to three weeks, and what took longer up to the longest."""

PLACE = (
    column("queue", "string", "The queue's name."),
    column("queue_id", "int64", "Its incarnation: it changes when a queue is deleted and created again."),
    column("partition", "int32", "Which partition of the queue, 0 for the first."),
    column("partition_id", "int64", "The partition's own id."),
)

ROWS = WarehouseTable(
    "ledger_rows",
    "Every change of every run of messages, once, as the partitions reported them.",
    "batches",
    (
        column("time", "timestamp", "When it happened."),
        *PLACE,
        column("number", "int64", "The partition's own count of changes."),
        column(
            "change", "int32", "What happened: 1 sent, 2 arrived, 3 leased, … as in docs/guide/pipeline.md."
        ),
        column("first", "int64", "The first message of the run."),
        column("count", "int32", "How many messages it has."),
        column("reason", "string", "Why, where there is more than one reason."),
        column("message_group", "string", "The messages' group, where they were sent with one."),
        column("ordering", "string", "Of sent messages: the queue's order then."),
        column("other_queue", "string", "The queue they go to or come from."),
        column("other_partition_id", "int64", "For arrived messages: the partition they came from."),
        column("other_first", "int64", "Of messages that arrived: the first one's number there."),
        column("census_first", "int64", "Of rows that name all that was there: the number of the first."),
        column("census_last", "int64", "The number of the last of them."),
        column(
            "stamps",
            "string",
            "For messages sent to a `clock` queue: the source of the stamps that order them.",
        ),
    ),
    ages="numbers",
)

PACKED = (
    column("begins", "int64", "How often the message began here: sent, arrived or listed in a census."),
    column("sent", "int64", "How often it was sent here."),
    column("finals", "int64", "How often it ended; more than once is a finding."),
    column("leases", "int64", "How often it was handed out and seen."),
    column("began_us", "int64", "When it began, in microseconds since 1970."),
    column("first_lease", "int64", "The change that handed it out first."),
    column("last_lease", "int64", "The change that handed it out last."),
    column("leased_us", "int64", "When that was."),
    column("first_final", "int64", "The change that ended it first: its number × 32 + what it was."),
    column("last_final", "int64", "The change that ended it last, in the same way."),
    column("ended_us", "int64", "When it ended last."),
    column("last", "int64", "The last change of all, in the same way."),
    column("ordering", "int64", "Up to which change its queue gives groups out by number; 0: never."),
    column("group_hash", "int64", "Identifies its group."),
    column("told", "int64", "1: it was reported as lost or unsent already, or its beginning is unknown."),
    column("gone_us", "int64", "When its queue was first found to be gone, if it is."),
)
"""The facts about a message: sums, minima and maxima, so that later facts can be added."""

STATE = WarehouseTable(
    "ledger_state",
    "The known facts about every message that has not ended, for the next roll-up.",
    "whole",
    (*PLACE, column("sequence", "int64", "The message's number in its partition."), *PACKED),
)

OPEN = WarehouseTable(
    "ledger_open",
    "Messages that are still there: sent and acknowledged, and not at an end.",
    "whole",
    (
        *PLACE,
        column("sequence", "int64", "The message's number in its partition."),
        column("state", "string", "waiting, leased, released or moving."),
        column("began", "timestamp", "When it was sent or arrived."),
        column("deliveries", "int64", "How often it was handed out so far."),
    ),
)

ENDINGS = ("deleted", "expired", "dropped", "purged", "moved", "queue_deleted", "unfollowed")
_ENDING_MEANINGS = (
    "Messages that consumers deleted.",
    "Messages that expired.",
    "Messages that a limit removed.",
    "Messages that were purged.",
    "Messages that moved to another queue.",
    "Messages that were deleted with their queue.",
    "Messages that existed when the lifecycle log was switched off.",
)
_COUNTS: tuple[WarehouseColumn, ...] = (
    column("began", "int64", "Messages that were sent, arrived or were listed in a census in this hour."),
    column("ended", "int64", "Messages that ended in this hour."),
    *(column(name, "int64", text) for name, text in zip(ENDINGS, _ENDING_MEANINGS, strict=True)),
    column("redeliveries", "int64", "Deliveries after the first of messages that ended in this hour."),
    column("dwell_ms_max", "int64", "The longest time from send to end."),
    column("processing_ms_max", "int64", "The longest time from the last delivery to the delete."),
)

PARTS = WarehouseTable(
    "ledger_parts",
    "Counts by hour and queue, one row for each roll-up: an hour may have several rows, which are added.",
    "batches",
    (
        column("hour", "timestamp", "The hour, by its beginning."),
        column("queue", "string", "The queue's name."),
        *_COUNTS,
        *DWELL.columns("Messages that ended after a time"),
        *PROCESSING.columns("Messages deleted after a time in work"),
    ),
    by_day=True,
)

HOURS = WarehouseTable(
    "ledger_hours",
    "What happened to messages, by hour and queue: how they ended, how long they stayed, how often they were redelivered.",
    "days",
    (
        column("hour", "timestamp", "The hour, by its beginning."),
        column("queue", "string", "The queue's name."),
        *_COUNTS,
        *(
            column(f"{kind}_ms_p{percent}", "int64", f"{percent} of a hundred {what}, in milliseconds.")
            for kind, what in (
                ("dwell", "stayed at most so long"),
                ("processing", "of those deleted took at most so long from their last delivery"),
            )
            for percent in (50, 95, 99)
        ),
    ),
    by_day=True,
)
COUNTS = tuple(one.name for one in _COUNTS)

_FINDING = (
    column(
        "kind",
        "string",
        "lost, duplicate-end, delivered-after-end, reordered, unsent, never-arrived, queue-gone or gap.",
    ),
    *PLACE,
    column(
        "sequence",
        "int64",
        "The message's number in its partition; of a gap and of a queue that is gone none.",
    ),
    column(
        "message_id", "string", "The message's id as SQS shows it, where it was first sent to this queue."
    ),
    column("number", "int64", "The partition's change that shows it; of a gap the first that is missing."),
    column("time", "timestamp", "When the message last changed; of a gap the last change before it."),
    column("explanation", "string", "The problem, in a sentence."),
)
FINDINGS = WarehouseTable(
    "ledger_findings", "Promises that were not kept, message by message.", "batches", _FINDING
)
CHECK = WarehouseTable(
    "ledger_check",
    "The findings of the last `penstock pipeline run ledger --full`, which checks all rows at once.",
    "whole",
    _FINDING,
)
FINDING_COLUMNS = tuple(one.name for one in _FINDING)
GAPS = gap_table("ledger_gaps", "partition_id", "The partition that numbered them.")
