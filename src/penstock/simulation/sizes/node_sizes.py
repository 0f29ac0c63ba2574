"""Sizes of storage, of the node and of replicas."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.simulation.sizes.size import OptionSize, Size, sizes_of


def _stretch(size: int) -> Mapping[str, bytes]:
    return {"_ZEROS": bytes(size + 40)}


STORAGE = (
    Size(
        "storage.replica_log",
        "IMAGE_PART_BYTES",
        (120, 250, 1_000, 4_000),
        "a state sent in one part or in several",
        ("backend.node.whole_state",),
    ),
    *sizes_of(
        "storage.replica_log",
        ("READ_ENTRIES", (1, 3, 20), "records read for a replica at once or in turns"),
        ("READ_BYTES", (1, 500, 4_000), "the same by their bytes"),
    ),
    Size("storage.entry_read", "WINDOW_BYTES", (40, 300, 3_000), "an entry in one read window or across two"),
    *sizes_of(
        "storage.copy",
        ("WINDOW_BYTES", (1, 300, 3_000), "entries copied from one read window or from several"),
        ("LAST_ENTRY_BYTES", (40, 100, 600), "an entry that ends in its window or has to be read again"),
        ("_SECTOR_BYTES", (64,), "how much of a copy is given up where it cannot be read"),
    ),
    *sizes_of(
        "storage.range_read",
        ("RANGE_BYTES", (1, 500, 5_000), "a log read in one range or in several"),
        ("_GAP_BYTES", (0, 100, 2_000), "entries of others read over or jumped over"),
        ("_HEAD_BYTES", (0, 16), "a batch that fits into its range or is read by itself"),
    ),
    Size(
        "storage.flush",
        "JOIN_BELOW_BYTES",
        (1, 64),
        "buffers that are copied together or written by themselves",
    ),
    *sizes_of(
        "storage.reader",
        ("SMALL_READ_BYTES", (40, 200), "a cold read that finds all of its entry or a part"),
        ("SEEK_BYTES", (40, 300), "an entry within the first read or longer than it"),
        ("FILES_REMEMBERED", (1, 3), "how many files have a place where the last read ended"),
    ),
    Size(
        "storage.checkpointer",
        "PAUSE_RETRIES",
        (1, 3),
        "a checkpoint on a full disk tried again soon or late",
    ),
    Size(
        "storage.journal",
        "TABLE_SHARE",
        (400, 1_000, 4_096),
        "a journal file that ends with its table of partitions or without",
        ("storage.opening",),
    ),
    Size(
        "storage.scan",
        "_STRETCH_BYTES",
        (64, 512, 4_096),
        "where the search for headers passes over zeros",
        (),
        _stretch,
    ),
    Size(
        "storage.entry",
        "HEAD_BYTES_MAX",
        (3_000,),
        "a record that has a bound, or one that grows with the data",
        ("storage.journal",),
        together=(("model.limits.RUNS_PER_RECORD", 5), ("model.limits.MOVE_MESSAGES", 3)),
    ),
    Size("storage.snapshot", "WRITE_BYTES", (1, 100, 2_000), "a snapshot written at once or in pieces"),
)
"""Journal, segments, snapshots."""

BACKEND = (
    Size(
        "backend.admin.administration",
        "_QUEUES_PER_PAGE",
        (1, 2),
        "a list of queues in one page or in several",
    ),
    *sizes_of(
        "backend.receive.bodies",
        ("_COLD_AT_ONCE", (1, 3), "batches read ahead of a move in one job or in several"),
        ("_JOINED_BYTES", (1, 64), "small slices joined or sent as they are"),
    ),
    Size(
        "backend.admin.catalogue",
        "_QUEUES_AT_ONCE",
        (1, 2),
        "queues of the catalogue in one page or in several",
    ),
    *sizes_of(
        "backend.upkeep.checkpoints",
        ("_POSITIONS_PER_COPY", (1, 2, 9), "the copies of a queue in one job or in several"),
        ("_PLACES_PER_TURN", (1, 100), "what a checkpoint copies, looked for in one turn or in several"),
        ("_SPARSE", (1, 2), "how empty a segment is when what lives in it is moved on"),
        ("_RETRY_MS", (30, 200), "a checkpoint that failed tried again soon or late"),
    ),
    Size(
        "backend.upkeep.idle_expiry",
        "_RETRY_MS",
        (30, 200),
        "an idle queue that could not be deleted, tried again",
    ),
    Size("backend.upkeep.idle_queues", "_LOOK_AGAIN_MS", (30, 200), "how often an idle queue is looked at"),
    Size(
        "backend.upkeep.keeping_up", "_RETRY_MS", (5, 30), "upkeep without room in the journal, tried again"
    ),
    Size(
        "backend.lifecycle.reports",
        "RETRY_MS",
        (5, 30),
        "a report without room in the journal, tried again",
        ("replication.primary_secondary.node.leader.lifecycle_sending",),
    ),
    *sizes_of(
        "backend.logs.membership",
        ("_RETRY_MS", (5, 30), "a member's end without room in the journal, tried again"),
        ("_GROUPS_PER_PAGE", (1, 2), "a list of groups in one page or in several"),
    ),
    *sizes_of(
        "backend.logs.reading",
        ("_BATCHES_AT_ONCE", (1, 3), "a read of a log that gives all batches or some"),
        ("_JOBS_AT_ONCE", (1,), "reads of logs at the same time or in line"),
        ("_JOINED_BYTES", (1, 64), "small batches joined or sent as they are"),
    ),
    Size("backend.logs.waiting", "_STALE_AT_LEAST", (1, 4), "deadlines of readers kept or swept out"),
    Size(
        "backend.logs.member_leases", "_STALE_AT_LEAST", (1, 4), "ends of members' leases kept or swept out"
    ),
    Size("backend.receive.waiting", "_STALE_AT_LEAST", (1, 4), "places of receivers kept or swept out"),
    Size("backend.upkeep.upkeep_times", "_STALE_AT_LEAST", (1, 4), "times of queues kept or swept out"),
    Size(
        "backend.node.node", "_MOVES_PER_TURN", (1, 2), "queues that move messages in one turn or in several"
    ),
    Size("backend.send.sends", "CLOCK_RETRY_MS", (1, 100), "how often an uncertain clock is asked"),
)
"""The node."""

REPLICATION = (
    *sizes_of(
        "replication.primary_secondary.node.moves.cluster_moves",
        ("RETRY_MS", (20, 60), "a move that failed tried again soon or late"),
        ("ANSWER_MS", (40, 300), "a move that is answered in time or given up"),
        ("JOURNEYS_AT_ONCE", (1, 2), "moves to all targets at once or in turns"),
    ),
    *sizes_of(
        "replication.primary_secondary.node.follower.installing",
        ("BYTES_PER_TURN", (1, 500, 5_000), "a state written in one turn or in several"),
        ("PAGES_PER_TURN", (1,), "pages of a state built one at a time or two"),
        ("RETRY_MS", (20, 200), "a state that found no room in the journal, tried again"),
    ),
    Size(
        "replication.primary_secondary.node.leader.read_proofs",
        "READ_MS",
        (100, 400),
        "a read that is answered at once or waits for the word of replicas",
    ),
    Size(
        "replication.primary_secondary.node.leader.sender",
        "APPEND_BYTES",
        (1, 300, 3_000),
        "records sent in one message or in several",
    ),
    *sizes_of(
        "replication.primary_secondary.node.leader.lifecycle_sending",
        ("LAST_WORDS_MS", (50, 500), "a partition dropped with or without its last rows"),
        ("_UNCOMMITTED_MS", (1, 50), "rows that are committed yet or not"),
    ),
    Size(
        "replication.primary_secondary.node.peer_stream",
        "WINDOW_BYTES",
        (1, 500, 5_000),
        "a stream with room or one that waits",
    ),
    *sizes_of(
        "replication.primary_secondary.node.proposing",
        ("LOOK_MS", (5, 200), "how often a primary looks at its replicas"),
        ("RETRY_MS", (20, 60), "a proposal without an answer, asked again"),
        ("STALL_MS", (40,), "a primary that was on time or stood still"),
    ),
    Size(
        "replication.primary_secondary.node.leader.recent_entries",
        "RECENT_BYTES",
        (1, 1_000, 10_000),
        "records sent from memory or from the journal",
    ),
    Size(
        "replication.primary_secondary.node.replication",
        "_AGAIN_MS",
        (1, 60),
        "what found no room in the journal, tried again",
    ),
    *sizes_of(
        "backend.node.whole_state",
        ("_WALK_MESSAGES", (1, 3, 20), "batches of a state read in one step or in several"),
        ("_WALK_BYTES", (1, 300, 3_000), "the same by their bytes"),
        ("_WALK_BATCHES", (1, 3), "the same for a log"),
    ),
    Size(
        "replication.primary_secondary.core.epochs",
        "EPOCHS_REMEMBERED",
        (1, 2, 3),
        "logs that part in an epoch that is remembered or not",
    ),
    Size(
        "replication.primary_secondary.core.replica_progress",
        "LAG_MS",
        (300, 600),
        "a replica that is in sync or lags",
        ("replication.primary_secondary.node.proposing", "replication.primary_secondary.core.primary"),
    ),
    Size(
        "replication.primary_secondary.core.replica_progress",
        "LAST_LAG_MS",
        (1_000,),
        "the last replica in sync that is waited for or given up",
        ("replication.primary_secondary.core.primary",),
    ),
    *sizes_of(
        "replication.primary_secondary.core.replica_progress",
        ("CLOSE_MS", (20, 2_000), "a replica close enough to be waited for or not"),
        ("AWAIT_MS", (5, 100), "a replica that comes in while commits wait, or too late"),
        ("AWAIT_AGAIN_MS", (50, 1_000), "one that was too late, waited for again"),
    ),
)
"""Replicas."""

MEMBERSHIP = (
    Size("cluster.manager.loop", "WRITES_AT_ONCE", (1, 2), "changes of the layout at once or in turns"),
    Size("cluster.manager.loop", "GATHER_MS", (1, 2_000), "news that is looked at together or one by one"),
    *sizes_of(
        "cluster.membership.shutdown",
        ("WRITES_AT_ONCE", (1, 2), "a node that hands over everything at once or in turns"),
        ("LOOK_MS", (20,), "how often a node that leaves looks whether it may"),
    ),
    Size(
        "cluster.membership.held_lease", "RENEWALS_AT_ONCE", (1, 2), "a renewal that waits for others or not"
    ),
)
"""What nodes ask of the metadata store."""


IN_CLUSTERS = {
    "replication.primary_secondary.node.layout_view.GONE_MS": 10_000,
    "replication.primary_secondary.node.layout_view.STEP_MS": 500,
}
"""Small in every run of a cluster: a node that has just started waits for entries for longer than a run lasts otherwise."""

OPTIONS = (
    OptionSize("segment_bytes", (1, 400, 2_000), "what lives on in one segment or in several"),
    OptionSize("checkpoint_journal_bytes", (1_000, 4_000), "checkpoints now and then or all the time"),
    OptionSize("cache_bytes", (0, 700), "batches read from memory or from the disk"),
    OptionSize("read_ahead_bytes", (40, 200), "a read that takes in the next batch or not"),
    OptionSize("open_files_max", (1,), "segments that are open or have to be opened again"),
    OptionSize("journal_file_bytes", (16_384, 24_576), "entries in one journal file or across several"),
)
