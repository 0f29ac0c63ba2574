"""Sizes of queues, of front ends, and the limits of the product."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.simulation.sizes.size import Size, sizes_of


def _chunk(bits: int) -> Mapping[str, int]:
    return {"CHUNK_MESSAGES": 1 << bits, "CHUNK_MASK": (1 << bits) - 1}


QUEUE = (
    Size(
        "queue.state.chunk",
        "CHUNK_BITS",
        (1, 2, 4, 6),
        "messages and batches in one chunk or across several",
        (
            "backend.node.whole_state",
            "queue.snapshot.building",
            "queue.snapshot.chunk_image",
            "queue.snapshot.first_images",
            "queue.ready.groups",
            "queue.ready.lanes",
            "queue.lifecycle",
            "queue.message_view",
            "queue.decisions.number_skips",
            "queue.state.purging",
            "queue.decisions.receive",
            "queue.decisions.room",
            "queue.ready.sorted_order",
            "queue.state.table",
            "simulation.partition_state",
        ),
        _chunk,
    ),
    Size("queue.decisions.room", "ROOM_RECORDS", (1, 2), "room that one send makes, or several"),
    Size(
        "queue.decisions.number_skips",
        "GAPS_REMEMBERED",
        (1, 3),
        "numbers that were skipped, remembered or not",
    ),
    Size(
        "queue.ready.groups",
        "_COMPACT_AT_LEAST",
        (0, 3),
        "messages of a group that are gone, kept or dropped",
    ),
    Size("queue.ready.lanes", "_STALE_AT_LEAST", (0, 4), "places in a lane that are over, kept or swept out"),
    Size("queue.ready.late_heads", "_SWEEP_AT_LEAST", (1, 4), "late heads that are gone, kept or swept out"),
    Size(
        "model.swept_heap",
        "_SWEEP_AT_LEAST",
        (1, 8),
        "ends of leases and timers that are over, kept or swept out",
    ),
    Size(
        "queue.log.index",
        "_COMPACT_AT_LEAST",
        (1, 5),
        "batches cut from a log that leave its columns or stay",
    ),
    Size("queue.log.retention", "_BATCHES_AT_ONCE", (1, 3), "a log cut at once or in steps"),
    Size(
        "queue.snapshot.capture", "_COLUMN_BYTES", (1, 8), "the table of producers in one page or in several"
    ),
    Size("queue.state.packed_index", "BLOCK_ENTRIES", (2, 8), "an index in one block or in several"),
    *sizes_of(
        "queue.state.producers",
        ("_COMPACT_AT_LEAST", (1, 8), "batches that are forgotten, kept in their columns or dropped"),
        ("_COMPACT_SHARE", (1, 2), "the same by how many are left"),
        ("_FORGOTTEN_AT_ONCE", (1, 2), "idle producers forgotten in one step or in several"),
        ("_RECENT", (1, 3), "producers that are found at once or looked up"),
    ),
    Size("queue.state.table", "CHUNKS_AT_ONCE", (1, 3), "chunks looked through in one step or in several"),
    Size(
        "queue.log.group_assignment",
        "PAIRS_AT_MOST",
        (1, 6),
        "partitions of a log given to members one by one or in blocks",
    ),
    Size(
        "queue.ready.sorted_order",
        "UNCERTAIN_RETRY_MS",
        (1, 100),
        "how often an uncertain clock is asked for the window",
    ),
    *sizes_of(
        "queue.state.timers",
        ("_SWEEP_AT_LEAST", (1, 4), "timers of messages that are gone, kept or swept out"),
    ),
    *sizes_of(
        "queue.state.sent_times",
        ("_FORGET_AT_LEAST", (0, 3), "marks of sent times that are over, kept or dropped"),
    ),
    *sizes_of(
        "queue.decisions.upkeep",
        ("_LEASES_AT_ONCE", (1, 3), "leases that end in one record turn or in several"),
        ("_MESSAGES_AT_ONCE", (1, 5), "messages past their retention that go at once or in steps"),
    ),
    Size(
        "queue.ready.weighted_turns",
        "_ONE_BY_ONE",
        (1, 4),
        "a receive from several queues shared out message by message or at once",
    ),
    Size(
        "ordering.clock_estimator", "EXCHANGES_KEPT", (1, 3), "readings of a clock that are kept or forgotten"
    ),
    Size(
        "ordering.pending_runs",
        "HEADS_REMEMBERED",
        (1, 3),
        "a window sorted from remembered heads or looked through",
        ("ordering.window_sorter",),
    ),
    *sizes_of(
        "ordering.pending_runs",
        ("_AT_ONCE", (1, 5), "a window captured in one stretch or in several"),
        ("_IMAGES_AT_ONCE", (1, 3), "the same by its runs"),
    ),
    *sizes_of(
        "model.aged_map",
        ("_MANY", (1, 20), "ids in one index or in several"),
        ("_INDEXES", (2, 8), "in how many"),
    ),
    Size("model.batch", "_COPIED_BYTES", (0, 64), "a slice of a batch that is copied or a view"),
    Size("model.runs", "_LONG", (1, 4), "runs merged one by one or by bisection"),
)
"""Queues and their order."""

ROUTING = (
    *sizes_of(
        "routing.altering",
        ("LOOKS", (1, 3), "a change that every primary goes by when it is answered, or not yet"),
        ("LOOK_AGAIN_MS", (1, 200), "how often that is looked at"),
    ),
    Size("routing.claiming", "ATTEMPTS", (1, 2), "an id of two groups at once that is decided or refused"),
    Size(
        "routing.cluster_map", "DEPARTED_AT_MOST", (1, 2), "queues that are known to be deleted or forgotten"
    ),
    Size(
        "routing.deleting",
        "ATTEMPTS",
        (1, 3),
        "a write that others were quicker with, tried again or refused",
        ("routing.altering", "routing.creating"),
    ),
    Size(
        "routing.creating", "IDS_AT_ONCE", (1, 3), "ids of queues that are there or have to be counted first"
    ),
    Size("routing.describing", "QUEUES_PER_PAGE", (1, 2), "a list of queues in one page or in several"),
    Size(
        "routing.priority_receiving", "ROUNDS", (1,), "a receive from several queues that looks again or not"
    ),
    Size(
        "routing.partition_line",
        "DEPOSED_SECONDS",
        (0, 2),
        "an answer of a deposed node that is waited for or asked for again",
    ),
    Size(
        "routing.spread",
        "REMEMBERED",
        (1, 3),
        "turns and attempts that are remembered or forgotten",
        ("routing.context",),
    ),
    Size(
        "routing.describing",
        "GLANCE_MS",
        (20, 200),
        "a partition that answers in time or is left out",
    ),
)
"""Front ends of a cluster."""

LIMITS = (
    Size(
        "model.limits",
        "PRODUCER_BATCHES_PER_QUEUE",
        (1, 30),
        "batches of all producers that are remembered or too old",
        together=(("model.limits.PRODUCERS_PER_QUEUE", 14),),
    ),
    *sizes_of(
        "model.limits",
        ("ATTEMPTS_PER_QUEUE", (1, 3), "a receive asked again that is remembered or not"),
        ("ATTEMPT_MS", (300, 1_500), "the same by time"),
        ("CAPTURE_PAGES", (1, 3), "a state copied in one turn or in several"),
        ("LIFECYCLE_ROWS_PER_REPORT", (1, 7), "rows about messages in one report or in several"),
        ("LIFECYCLE_REPORT_CHARACTERS", (1, 40), "the same by their texts"),
        ("LIFECYCLE_REPORT_MS", (1, 400), "rows that are reported alone or together"),
        ("LOG_READ_BYTES", (1, 500), "a read of a log that gives one batch or many"),
        ("LOG_READ_BYTES_DEFAULT", (1, 500), "the same where the reader says nothing"),
        ("LOG_READERS_WAITING_PER_QUEUE", (1, 2), "a reader who waits or is turned away"),
        ("MOVE_MESSAGES", (1, 3), "messages that move at once or in steps"),
        ("MOVE_BYTES", (1, 300), "the same by their bytes"),
        ("PAGE_ROWS", (1, 3, 20), "tables of a state in one page or in several"),
        ("PEEK_MESSAGES", (1, 5), "messages looked at in one page or in several"),
        ("PEEK_BYTES", (1, 400), "the same by their bytes"),
        ("PEEK_SCAN_MESSAGES", (1, 10), "a filter that looks through all messages or some"),
        ("PRODUCER_BATCHES_REMEMBERED", (1, 3, 10), "a batch sent again that is remembered or too old"),
        ("PRODUCER_DUPLICATES_BYTES", (1, 800), "what a batch left out as duplicates, remembered or not"),
        ("PRODUCERS_PER_QUEUE", (9, 14), "producers that are remembered or forgotten"),
        ("RECEIVE_BYTES", (1, 300), "a receive that gives one message or many"),
        ("RECEIVE_BYTES_DEFAULT", (1, 300), "the same where the receiver says nothing"),
        ("RECEIVE_PARKED_MS", (1, 50), "a receive whose connection is ready in time or not"),
        ("RECEIVE_SETS_REMEMBERED", (1, 2), "sets of queues whose turns are remembered or not"),
        ("RUNS_PER_RECORD", (1, 2, 5), "scattered messages in one record or in several"),
        ("SENDS_HELD_PER_QUEUE", (1, 3), "a send that waits for the clock or is refused"),
        ("SENDS_HELD_BYTES_PER_QUEUE", (1, 500), "the same by its bytes"),
        ("SENDS_HELD_BYTES_PER_NODE", (1, 500), "the same for all queues"),
        ("SEND_HELD_MS", (20, 300), "the same by time"),
        ("UNREAD_BYTES", (1, 500), "a connection that takes messages or is behind"),
        ("WAITING_PER_CONNECTION", (1, 2), "a receiver who waits or is turned away"),
        ("WAITING_RECEIVERS_PER_QUEUE", (1, 2), "the same for all connections"),
    ),
)
"""What the product bounds."""
