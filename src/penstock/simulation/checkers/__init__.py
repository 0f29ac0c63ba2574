"""Checkers: one invariant a file, each a function from the history of a run to its violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.simulation.checkers import (
    acknowledged_sends,
    damage,
    dead_letters,
    group_order,
    late_heads,
    lateness,
    leases,
    lifecycle,
    log_prefix,
    log_retention,
    no_ghosts,
    one_message,
    overload,
    producer_order,
    reader_groups,
    redelivery,
    time_order,
    timers,
)
from penstock.simulation.history import History
from penstock.simulation.violation import Violation

CHECKERS: dict[str, Callable[[History], Iterable[Violation]]] = {
    "I1": acknowledged_sends.check,
    "I2": no_ghosts.check,
    "I3": one_message.check,
    "I4": leases.check,
    "I5": redelivery.check,
    "I6": dead_letters.check,
    "I7": timers.check,
    "I10": damage.check,
    "I13": overload.check,
    "fifo": group_order.check,
    "order": producer_order.check,
    "time": time_order.check,
    "late": lateness.check,
    "heads": late_heads.check,
    "log": log_prefix.check,
    "log-cut": log_retention.check,
    "groups": reader_groups.check,
    "lifecycle": lifecycle.check,
}
