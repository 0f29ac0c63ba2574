"""The ledger of a run: what clients were promised, and whether it was kept. Decides without a clock; times come in.

A message is a text that is sent once. An answer that never came leaves it open whether a message was stored; such
messages may turn up or not. What was acknowledged must turn up, and must stay away once its deletion was acknowledged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class _Known:
    acknowledged: bool = False
    received: int = 0
    deleted_at: float | None = None
    """When the deletion was acknowledged."""
    held_until: float = 0.0
    """Nobody else may get it before: when the receive that gave it was asked for, and its visibility timeout."""


@dataclass
class Ledger:
    """Written by all clients of a run, which take turns (they share an event loop)."""

    visibility_seconds: float
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _messages: dict[str, _Known] = field(default_factory=dict)
    _last_first: dict[str, int] = field(default_factory=dict)

    def begin(self, message: str) -> None:
        """It is about to be sent."""
        assert message not in self._messages, "a message is sent once"
        self._messages[message] = _Known()
        self.counts["begun"] += 1

    def acknowledge(self, message: str) -> None:
        """The server has it."""
        self._messages[message].acknowledged = True
        self.counts["acknowledged"] += 1

    def receive(self, message: str, asked: float, answered: float) -> None:
        """It was given to a consumer that had asked at one moment and was answered at another."""
        known = self._messages.get(message)
        self.counts["received"] += 1
        if known is None:
            self._violated(f"{message} was received and never sent")
            return
        if known.deleted_at is not None and known.deleted_at < asked:
            self._violated(
                f"{message} was received {answered - known.deleted_at:.3f} s after its deletion was acknowledged"
            )
        elif known.deleted_at is None and answered < known.held_until:
            self._violated(
                f"{message} was received {known.held_until - answered:.3f} s before the end of another one's lease"
            )
        if known.received:
            self.counts["received again"] += 1
        known.received += 1
        known.held_until = asked + self.visibility_seconds

    def receive_in_order(self, message: str, group: str, number: int) -> None:
        """The first time that a message of an ordered group came, besides `receive`: numbers rise without a gap.

        A gap is a message that was stored and overtaken, unless it is not known whether it was stored.
        """
        last = self._last_first.get(group, -1)
        if number <= last:
            return
        for missing in range(last + 1, number):
            skipped = self._messages.get(f"{group}/{missing}")
            if skipped is not None and skipped.acknowledged and skipped.deleted_at is None:
                self._violated(
                    f"{message} came before {group}/{missing}, which was acknowledged before it was sent"
                )
        self._last_first[group] = number

    def delete(self, message: str, answered: float) -> None:
        """Its deletion was acknowledged."""
        known = self._messages.get(message)
        if known is not None and known.deleted_at is None:
            known.deleted_at = answered
            self.counts["deleted"] += 1

    @property
    def missing(self) -> list[str]:
        """Acknowledged and not received yet."""
        return [name for name, known in self._messages.items() if known.acknowledged and not known.received]

    def close(self) -> None:
        """The run is over and the queues are empty: whoever is missing now is lost."""
        for message in self.missing:
            self._violated(f"{message} was acknowledged and is lost")

    def _violated(self, sentence: str) -> None:
        self.violations.append(sentence)
