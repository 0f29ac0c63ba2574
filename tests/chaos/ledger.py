"""The ledger of a run: what clients were promised, and whether it was kept. Decides without a clock; times come in.

A message is a text that is sent once. An answer that never came leaves it open whether a message was stored; such
messages may turn up or not. What was acknowledged must turn up, and must stay away once its deletion was acknowledged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class _Known:
    acknowledged: bool = False
    received: int = 0
    deleted_at: float | None = None
    """When the deletion was acknowledged."""
    held_until: float = 0.0
    """Nobody else may get it before: when the receive that gave it was asked for, and its visibility timeout."""
    deletions_in_doubt: int = 0
    """Deletions that were asked for and are not answered, or never will be."""


@dataclass
class Ledger:
    """Written by all clients of a run, which take turns (they share an event loop)."""

    visibility_seconds: float
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _messages: dict[str, _Known] = field(default_factory=dict)
    _first_seen: dict[str, int] = field(default_factory=dict)
    """By group: the highest number that was received."""
    _undeleted: dict[str, dict[int, _Known]] = field(default_factory=dict)
    """By group: what was acknowledged and whose deletion is not, in the order in which it was sent."""

    def begin(self, message: str) -> None:
        """It is about to be sent."""
        assert message not in self._messages, "a message is sent once"
        self._messages[message] = _Known()
        self.counts["begun"] += 1

    def acknowledge(self, message: str) -> None:
        """The server has it."""
        known = self._messages[message]
        known.acknowledged = True
        self.counts["acknowledged"] += 1
        if known.deleted_at is None:
            group, number = _place(message)
            self._undeleted.setdefault(group, {})[number] = known

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

    def receive_in_order(self, messages: Sequence[str]) -> None:
        """One delivery of an ordered queue, besides `receive`: in each group nobody is overtaken.

        What comes for the first time must find that everything that was acknowledged before it was sent is deleted, or
        may be, or comes with it.
        """
        together = set(messages)
        for message in messages:
            group, number = _place(message)
            if number <= self._first_seen.get(group, -1):
                continue
            for earlier, known in self._undeleted.get(group, {}).items():
                if earlier >= number:
                    break
                if not known.deletions_in_doubt and f"{group}/{earlier}" not in together:
                    self._violated(
                        f"{message} came before {group}/{earlier}, which was acknowledged before it was sent"
                    )
            self._first_seen[group] = number

    def ask_to_delete(self, message: str) -> None:
        """A deletion is asked for; `delete` or `keep` follows, unless nobody answers."""
        known = self._messages.get(message)
        if known is not None:
            known.deletions_in_doubt += 1

    def keep(self, message: str) -> None:
        """The answer was that the receipt is too old: nothing is deleted."""
        known = self._messages.get(message)
        if known is not None:
            known.deletions_in_doubt -= 1

    def delete(self, message: str, answered: float) -> None:
        """Its deletion was acknowledged."""
        known = self._messages.get(message)
        if known is not None and known.deleted_at is None:
            known.deleted_at = answered
            self.counts["deleted"] += 1
            group, number = _place(message)
            self._undeleted.get(group, {}).pop(number, None)

    @property
    def missing(self) -> list[str]:
        """Acknowledged and not received yet."""
        return [name for name, known in self._messages.items() if known.acknowledged and not known.received]

    def close(self) -> None:
        """The run is over and the queues are empty: whoever is missing now is lost, and all the rest is deleted."""
        for message in self.missing:
            self._violated(f"{message} was acknowledged and is lost")
        for name, known in self._messages.items():
            if known.received and known.deleted_at is None:
                if known.deletions_in_doubt:
                    self.counts["deleted without an answer"] += 1
                else:
                    self._violated(f"{name} was received, never deleted, and is gone")

    def _violated(self, sentence: str) -> None:
        self.violations.append(sentence)


def _place(message: str) -> tuple[str, int]:
    """The group of a message, which is its sender, and its number in it."""
    group, _, number = message.rpartition("/")
    return group, int(number)
