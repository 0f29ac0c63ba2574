"""Bugs to plant in a single node: the rows. The patches are in the modules beside this one."""

from __future__ import annotations

from collections.abc import Callable

from penstock.model.errors import ErrorCode
from penstock.model.records import Deleted, MoveFinished
from penstock.model.settings import QueueSettings
from penstock.simulation.scenario import Scenario
from tests.simulation.planted import batch_order, deletion, idleness, lifecycle, opening, time_order
from tests.simulation.planted.bug import PlantedBug
from tests.simulation.planted.patches import (
    acknowledge_before_flush,
    after_recovery,
    copies_not_synced,
    delays_end_early,
    departs_before_arrival,
    fifo_passes_leased,
    forged_receipts_work,
    forget_ids,
    forget_leases,
    forget_producers,
    full_disk_refuses_deletes,
    late_deletes_ignore_the_count,
    leases_never_end,
    moves_do_not_arrive,
    moves_forget_the_first_home,
    never_congested,
    nobody_is_woken,
    receives_without_limit,
    refused_sends_are_acknowledged,
    release_delay_ignored,
    reset_receive_counts,
    skip_on_replay,
    skip_sync,
    stale_receipts_work,
)


def _always(scenario: Scenario) -> bool:
    return True


def _dead_letters(scenario: Scenario) -> bool:
    return any(queue.settings.max_receives is not None for queue in scenario.queues)


def _rescues(scenario: Scenario) -> bool:
    return any(queue.delays_ms and queue.settings.dead_letter_queue is not None for queue in scenario.queues)


def _crashes(scenario: Scenario) -> bool:
    return scenario.faults.crashes_ms > 0


def _with_queue(*names: str) -> Callable[[Scenario], bool]:
    return lambda scenario: _crashes(scenario) and _has(scenario, *names)


def _has(scenario: Scenario, *names: str) -> bool:
    return any(queue.name in names for queue in scenario.queues)


def _sends_in_order(scenario: Scenario) -> bool:
    return scenario.ordered_producers > 0


def _is_cut(settings: QueueSettings) -> bool:
    return settings.has_log and (settings.retain_bytes is not None or settings.retention_ms < 10_000)


NODE_BUGS: dict[str, PlantedBug] = {
    "acknowledge-before-flush": PlantedBug(
        "I1", "answers leave before what they promise is on disk", acknowledge_before_flush, _crashes
    ),
    "skip-sync": PlantedBug("I1", "the journal is written and never synced", skip_sync, _crashes),
    "full-disk-forgets": PlantedBug(
        "I1",
        "on a full disk a send is acknowledged and not stored",
        lambda: refused_sends_are_acknowledged(ErrorCode.DISK_FULL),
        lambda scenario: scenario.faults.full_disk_ms > 0,
    ),
    "replay-skips-deletes": PlantedBug(
        "I2",
        "what was deleted since the last snapshot is back after a crash",
        lambda: skip_on_replay(Deleted),
        _crashes,
    ),
    "restart-forgets-ids": PlantedBug(
        "I3",
        "a restart forgets deduplication ids",
        lambda: after_recovery(forget_ids),
        _with_queue("deduplication"),
    ),
    "restart-forgets-producers": PlantedBug(
        "I3",
        "a restart forgets which batches of which producer are stored",
        lambda: after_recovery(forget_producers),
        _crashes,
    ),
    "restart-forgets-leases": PlantedBug(
        "I4", "a restart makes leased messages ready", lambda: after_recovery(forget_leases), _crashes
    ),
    "stale-receipts-work": PlantedBug(
        "I4", "any receipt settles whatever is leased", stale_receipts_work, _crashes
    ),
    "late-deletes-ignore-the-count": PlantedBug(
        "I4",
        "a late delete takes what others have received since",
        late_deletes_ignore_the_count,
        _always,
    ),
    "forged-receipts-work": PlantedBug(
        "I4", "a receipt is believed whoever made it", forged_receipts_work, _always
    ),
    "restart-resets-counts": PlantedBug(
        "I5", "a restart resets receive counts", lambda: after_recovery(reset_receive_counts), _crashes
    ),
    "nobody-is-woken": PlantedBug(
        "I5",
        "waiting receivers are not told that something is ready",
        nobody_is_woken,
        lambda scenario: not scenario.cold_reads,
    ),
    "leases-never-end": PlantedBug(
        "I5", "what a dead consumer held never comes back", leases_never_end, _always
    ),
    "moves-do-not-arrive": PlantedBug(
        "I6",
        "a message leaves for its dead-letter queue and is not stored there",
        moves_do_not_arrive,
        _dead_letters,
    ),
    "deletion-forgets-delayed": PlantedBug(
        "I6",
        "delayed messages that have a dead-letter queue go with their deleted queue",
        deletion.forgets_delayed,
        _rescues,
    ),
    "deletion-drops-dead-letters": PlantedBug(
        "I1",
        "with a deleted queue goes what is in its dead-letter queue",
        deletion.drops_dead_letters,
        _dead_letters,
    ),
    "deletion-removes-what-moves": PlantedBug(
        "I6",
        "a deleted queue is removed with messages that are on their way to another",
        deletion.removes_what_moves,
        _rescues,
    ),
    "sources-hear-nothing": PlantedBug(
        "I6",
        "a queue is deleted, and its sources do not hear what has arrived in it",
        deletion.sources_hear_nothing,
        lambda scenario: scenario.deletes_targets,
    ),
    "departure-before-arrival": PlantedBug(
        "I6",
        "a moved message leaves its queue some turns before it is in the other",
        departs_before_arrival,
        lambda scenario: _crashes(scenario) and _dead_letters(scenario),
    ),
    "restart-repeats-moves": PlantedBug(
        "I6",
        "a restart forgets which moves were finished and makes them again",
        lambda: skip_on_replay(MoveFinished),
        lambda scenario: _crashes(scenario) and _dead_letters(scenario),
    ),
    "moves-forget-the-first-home": PlantedBug(
        "I6",
        "a message that moves twice says it was first sent to the queue in between",
        moves_forget_the_first_home,
        _dead_letters,
    ),
    "receives-without-limit": PlantedBug(
        "I6", "a message is received more often than its queue allows", receives_without_limit, _dead_letters
    ),
    "release-delay-ignored": PlantedBug(
        "I7", "what was released for later is ready at once", release_delay_ignored, _always
    ),
    "delays-end-early": PlantedBug(
        "I7", "delays end 400 ms too early", delays_end_early, _with_queue("delays", "everything")
    ),
    "restart-forgets-expiries": PlantedBug(
        "I7",
        "a restart forgets times to live",
        lambda: after_recovery(lambda partition: partition.expiries.clear()),
        _with_queue("ttl"),
    ),
    "copies-not-synced": PlantedBug(
        "I10", "messages are copied to a segment that is not synced", copies_not_synced, _crashes
    ),
    "full-disk-refuses-deletes": PlantedBug(
        "I13",
        "on a full disk deletes are refused like sends",
        full_disk_refuses_deletes,
        lambda scenario: scenario.faults.full_disk_ms > 0,
    ),
    "never-congested": PlantedBug(
        "I13",
        "requests are taken in however much waits for the disk",
        never_congested,
        lambda scenario: scenario.flood and scenario.faults.stalls_ms > 0,
    ),
    "fifo-overtakes": PlantedBug(
        "fifo", "a group goes on while its first message is out", fifo_passes_leased, _with_queue("fifo")
    ),
    "batches-follow-nothing": PlantedBug(
        "order",
        "a client does not say which batch a batch follows",
        batch_order.batches_follow_nothing,
        _sends_in_order,
    ),
    "any-batch-is-taken": PlantedBug(
        "order",
        "a batch is stored though the one before it was refused",
        batch_order.any_batch_is_taken,
        _sends_in_order,
    ),
    "refused-batches-go-to-the-end": PlantedBug(
        "order",
        "the client sends a batch that was refused again behind those that follow it",
        batch_order.refused_batches_go_to_the_end,
        _sends_in_order,
    ),
    "answers-before-the-stamp": PlantedBug(
        "time",
        "a send is acknowledged when its stamp may be past, not when it is",
        time_order.answers_before_the_stamp,
        lambda scenario: scenario.clocks.true and _has(scenario, "clock"),
    ),
    "restart-forgets-stamps": PlantedBug(
        "time",
        "a restart forgets the last stamp, and a clock that went back stamps below it",
        lambda: after_recovery(time_order.forget_stamps),
        lambda scenario: (
            scenario.clocks.node != "bounded" and scenario.clocks.faults_ms > 0 and _has(scenario, "clock")
        ),
    ),
    "snapshots-lose-the-order": PlantedBug(
        "time",
        "after a restart from a snapshot messages are delivered by their numbers, not by their stamps",
        time_order.snapshots_lose_the_order,
        _with_queue("stamped-clock", "causal"),
    ),
    "restart-forgets-the-watermark": PlantedBug(
        "late",
        "a restart forgets what has left the window, and takes in what comes before it",
        lambda: after_recovery(time_order.forget_floors),
        _with_queue("stamped-clock", "causal"),
    ),
    "late-ones-are-sorted-in": PlantedBug(
        "late",
        "messages are taken in below what has left the window",
        time_order.late_ones_are_sorted_in,
        lambda scenario: _has(scenario, "stamped-clock", "causal"),
    ),
    "late-ones-are-dropped": PlantedBug(
        "late",
        "late messages are gone instead of in the queue of late ones",
        time_order.late_ones_are_dropped,
        lambda scenario: _has(scenario, "stamped-clock", "causal"),
    ),
    "late-ones-wait-their-turn": PlantedBug(
        "heads",
        "late messages of a best-effort queue wait behind those that came before",
        time_order.late_ones_wait_their_turn,
        lambda scenario: _has(scenario, "stamped"),
    ),
    "windows-end-early": PlantedBug(
        "late",
        "messages leave after a quarter of their window",
        time_order.windows_end_early,
        lambda scenario: scenario.clocks.true and _has(scenario, "stamped-clock"),
    ),
    "reads-past-the-committed-end": PlantedBug(
        "log",
        "readers of a log see what is not on disk yet",
        time_order.reads_past_the_committed_end,
        _with_queue("log", "both"),
    ),
    "slices-at-the-wrong-message": PlantedBug(
        "log",
        "a read from inside of a batch begins one message too early",
        time_order.slices_begin_with_their_batch,
        lambda scenario: _has(scenario, "log", "both"),
    ),
    "ranges-end-with-the-answer": PlantedBug(
        "log",
        "a reader that reads ahead does not ask for the rest of a range that did not fit into the answer",
        time_order.ranges_end_with_the_answer,
        lambda scenario: bool(scenario.log_readers),
    ),
    "logs-are-cut-early": PlantedBug(
        "log-cut",
        "a log is cut a second early, or at half the bytes that it should keep",
        time_order.logs_are_cut_early,
        lambda scenario: any(_is_cut(queue.settings) for queue in scenario.queues),
    ),
    "stale-members-commit": PlantedBug(
        "groups",
        "a member reads and commits in a generation that is over",
        time_order.stale_members_commit,
        lambda scenario: _has(scenario, "log", "both") and scenario.group_members > 1,
    ),
    "restart-forgets-offsets": PlantedBug(
        "groups",
        "after a restart groups of readers begin at the front",
        lambda: after_recovery(time_order.forget_offsets),
        _with_queue("log", "both"),
    ),
    "snapshots-claim-more": PlantedBug(
        "ledger",
        "a snapshot says that it was taken later than it was, and what was written meanwhile is not replayed",
        opening.snapshots_claim_more,
        _crashes,
    ),
    "starts-fall-short": PlantedBug(
        "ledger",
        "a start leaves out the last record of the journal",
        opening.starts_fall_short,
        _crashes,
    ),
    "freeing-takes-the-messages": PlantedBug(
        "engine",
        "with the tables that a purge gave up the messages are freed that were sent since",
        deletion.freeing_takes_the_messages,
        _always,
    ),
    "reports-lose-a-row": PlantedBug(
        "lifecycle",
        "a row about messages is taken for reported and is not in the log",
        lifecycle.reports_lose_a_row,
        lifecycle.follows,
    ),
    "rows-come-again": PlantedBug(
        "lifecycle",
        "a row about messages comes again under another number",
        lifecycle.rows_come_again,
        lifecycle.follows,
    ),
    "restart-forgets-row-numbers": PlantedBug(
        "lifecycle",
        "rows about messages are counted anew after a restart",
        lifecycle.restart_forgets_numbers,
        lifecycle.follows_through_crashes,
    ),
    "uses-are-not-noted": PlantedBug(
        "idle",
        "a queue goes when its time is up, although it was used",
        idleness.uses_are_not_noted,
        lambda scenario: scenario.has_visitor,
    ),
    "idle-queues-stay": PlantedBug(
        "idle",
        "a queue that is not used any more does not go",
        idleness.idle_queues_stay,
        lambda scenario: scenario.has_visitor,
    ),
    "jumps-count-as-idle": PlantedBug(
        "idle",
        "a queue that is in use goes when the clock is set forward",
        idleness.jumps_count_as_idle,
        lambda scenario: scenario.has_visitor and scenario.faults.clock_steps_ms > 0,
    ),
}
