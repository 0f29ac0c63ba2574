"""Sizes that were added last. They are drawn after all others, so that the others of a seed stay as they are."""

from __future__ import annotations

from penstock.simulation.sizes.size import Size, sizes_of

LATEST = (
    Size(
        "cluster.membership.node_lease",
        "LOOK_MS",
        (100, 700),
        "a node that looks whether its entry is there, or hears it by chance",
    ),
    Size("backend.upkeep.freeing", "STEPS_PER_TURN", (1, 2), "a state freed in one turn or in several"),
    *sizes_of(
        "queue.snapshot.taking_apart",
        (
            "ROWS_AT_ONCE",
            (1, 4, 20),
            "a state that goes at once or is taken apart, in one step or in several",
        ),
        ("_FEW", (0, 2), "a container that goes with the one it is in or is emptied first"),
    ),
    Size(
        "model.limits",
        "PRODUCER_IDLE_STEP_MS",
        (86_400_000,),
        "a night after which idle producers are remembered or forgotten",
    ),
    Size(
        "queue.state.lease",
        "_FEW",
        (0, 1),
        "a little of a lease that is settled where it lies, or all of it gone through",
    ),
    Size(
        "model.swept_heap",
        "_ENTRIES_AT_ONCE",
        (1, 2),
        "ends of leases and timers that are over, swept out with one that is added or with several",
    ),
    Size(
        "queue.state.deduplication",
        "FORGOTTEN_AT_ONCE",
        (1, 3),
        "ids and attempts that are over, forgotten with one record or with several",
        ("queue.state.attempts",),
    ),
    Size(
        "ordering.causal_sorter",
        "_FORGOTTEN_AT_ONCE",
        (1, 3),
        "idle sessions forgotten with one batch or with several",
    ),
    Size(
        "queue.state.timers",
        "_LOOKED_AT_ONCE",
        (1, 3),
        "a slot of timers that is swept at once or a part at a time",
    ),
    Size("model.run_set", "_BLOCK_RUNS", (1, 2), "messages that move in one block of runs or in several"),
    Size(
        "queue.decisions.upkeep",
        "_BATCHES_AT_ONCE",
        (1, 3),
        "batches that leave a window with one record or with several",
    ),
    Size(
        "ordering.pending_runs",
        "_MESSAGES_LIKE_A_RUN",
        (1, 2),
        "long batches that leave a window with one record or with several",
    ),
    Size("queue.decisions.upkeep", "_RUNS_AT_ONCE", (1, 3), "a lease that ends in one record or in several"),
    *sizes_of(
        "wire.fair_turns",
        ("TURN_US", (1, 3), "requests of clients that are handled in one turn or in several"),
        ("QUANTUM_US", (1, 2), "a client served alone or in turns with others"),
        ("NOTED_US", (0, 2), "a turn whose time is noted or carried over"),
    ),
    Size(
        "backend.upkeep.idle_queues",
        "LOOK_MS",
        (40, 200),
        "a step of the clock that counts as time without use or not",
    ),
    Size("queue.decisions.room", "FEW_GROUPS", (0, 1), "groups that make room, found by their bytes or not"),
    Size("queue.decisions.upkeep", "_TIMERS_AT_ONCE", (1, 3), "timers that end in one record or in several"),
    *sizes_of(
        "queue.state.timers",
        ("_BLOCK_RUNS", (1, 3), "a slot of timers in one list or in several"),
        ("_MESSAGES_LIKE_A_RUN", (1, 2), "a long run of timers that ends in one record or in several"),
    ),
    *sizes_of(
        "queue.state.sent_times",
        ("_SWEEP_AT_LEAST", (1, 4), "marks of sent times without messages, kept or swept out"),
        ("_MARKS_AT_ONCE", (1, 3), "how many are looked at together"),
    ),
    Size(
        "replication.primary_secondary.node.proposing",
        "LOOKS_AT_ONCE",
        (1, 2),
        "partitions that a primary looks at in one turn or in several",
    ),
    Size(
        "replication.primary_secondary.node.leader.recent_entries",
        "_GONE_AT_LEAST",
        (0, 5),
        "records in memory of partitions that are not led any more, left behind or swept out",
    ),
    Size(
        "backend.receive.settlements",
        "RECEIPTS_AT_ONCE",
        (1, 2),
        "receipts of one request looked at in one turn or in several",
    ),
    *sizes_of(
        "queue.ready.late_heads",
        (
            "_SENDS_BETWEEN",
            (1, 3),
            "stamps of batches that are gone, swept out with each send or now and then",
        ),
        ("_BATCHES_AT_ONCE", (1, 3), "how many are looked at together"),
    ),
    Size(
        "replication.primary_secondary.node.layout_view",
        "GONE_MS",
        (10_000,),
        "an entry that may come back, or does not; in every run of a cluster",
    ),
    Size(
        "replication.primary_secondary.node.layout_view",
        "STEP_MS",
        (500,),
        "a clock that goes on or jumps; in every run of a cluster",
    ),
)
"""Drawn behind all others, so that what those are in a run stays as it is."""
