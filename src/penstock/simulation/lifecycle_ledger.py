"""A minimal ledger: what the lifecycle log says about every message, combined by number, row by row.

It only knows the rows: which changes may follow each other, and that numbers have no gaps except those that a row names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.columnar.lifecycle import Change

Row = dict[str, Any]

_ABSENT, _WAITING, _LEASED, _MOVING, _GONE, _ANY = "absent", "waiting", "leased", "moving", "gone", "any"

_MAY: dict[Change, tuple[frozenset[str], str]] = {
    Change.SENT: (frozenset({_ABSENT}), _WAITING),
    Change.ARRIVED: (frozenset({_ABSENT}), _WAITING),
    Change.LEASED: (frozenset({_WAITING}), _LEASED),
    Change.RELEASED: (frozenset({_LEASED}), _WAITING),
    Change.EXTENDED: (frozenset({_LEASED}), _LEASED),
    Change.RESUMED: (frozenset({_WAITING}), _LEASED),
    Change.DELETED: (frozenset({_LEASED, _WAITING}), _GONE),
    Change.EXPIRED: (frozenset({_WAITING, _LEASED, _MOVING}), _GONE),
    Change.DROPPED: (frozenset({_WAITING}), _GONE),
    Change.PURGED: (frozenset({_WAITING, _LEASED}), _GONE),
    Change.MOVE_STARTED: (frozenset({_WAITING, _LEASED}), _MOVING),
    Change.MOVE_FINISHED: (frozenset({_MOVING}), _GONE),
    Change.MOVE_ABANDONED: (frozenset({_MOVING}), _WAITING),
    Change.QUEUE_DELETED: (frozenset({_WAITING, _LEASED, _MOVING}), _GONE),
    Change.MATURED: (frozenset({_WAITING}), _WAITING),
    Change.STOOD: (frozenset({_ABSENT, _ANY}), _ANY),
    Change.UNFOLLOWED: (frozenset({_WAITING, _LEASED, _MOVING}), _ANY),
}
"""From which states each change may come, and to which it leads."""


class Event(NamedTuple):
    """One change of one message."""

    change: Change
    time_ms: int
    lease: int | None
    reason: str | None


class LifecycleLedger:
    """The rows about the messages of each partition."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.problems: list[str] = []
        self._rows: dict[int, dict[int, Row]] = {}
        self.repeated = 0
        """Rows that came more than once, and were the same."""
        for row in rows:
            self._take(row)
        self.messages: dict[int, dict[int, list[Event]]] = {}
        """By partition and sequence number."""
        self.states: dict[tuple[int, int], str] = {}
        """By (partition, sequence number)."""
        for partition_id in self._rows:
            self._replay(partition_id)

    def numbers(self, partition_id: int) -> int:
        """How many rows there are about a partition."""
        return len(self._rows.get(partition_id, ()))

    def partitions(self) -> list[int]:
        """The partitions that there are rows about."""
        return list(self._rows)

    def _take(self, row: Row) -> None:
        known = self._rows.setdefault(row["partition_id"], {}).setdefault(row["number"], row)
        if known is not row:
            self.repeated += 1
            if known != row:
                self.problems.append(
                    f"number {row['number']} of partition {row['partition_id']} is two rows: {known} and {row}"
                )

    def _replay(self, partition_id: int) -> None:
        rows = self._rows[partition_id]
        messages = self.messages[partition_id] = {}
        following = 1
        for number in sorted(rows):
            row = rows[number]
            change = Change(row["change"])
            if change is Change.RENUMBERED and row["first"] <= following:
                following = number + 1
                continue
            if following != number:
                self.problems.append(f"row {following} of partition {partition_id} is missing")
                return
            following += 1
            event = Event(change, row["time"] // 1_000, row["lease"], row["reason"])
            may, into = _MAY[change]
            for sequence in range(row["first"], row["first"] + row["count"]):
                key = (partition_id, sequence)
                state = self.states.get(key, _ABSENT)
                if state not in may and state != _ANY:
                    self.problems.append(
                        f"message {sequence} of partition {partition_id} is {state} and cannot be {change.name} (row {number})"
                    )
                self.states[key] = into if state != _ANY or into == _GONE else _ANY
                messages.setdefault(sequence, []).append(event)
