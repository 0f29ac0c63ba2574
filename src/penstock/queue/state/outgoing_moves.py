"""What of a partition is on its way to other queues: it is neither ready here nor gone until the target has it."""

from __future__ import annotations

from penstock.model.origin import Reason
from penstock.model.runs import Runs, count_of, difference, intersection, normalized

MoveKey = tuple[str, Reason]


class OutgoingMoves(dict[MoveKey, Runs]):
    """Runs by target and reason."""

    def start(self, key: MoveKey, runs: Runs) -> None:
        """Messages leave."""
        self[key] = normalized([*self.get(key, []), *runs])

    def load(self, key: MoveKey, runs: Runs) -> None:
        """Some messages from the snapshot, behind those that are there."""
        self.setdefault(key, []).extend(runs)

    def end(self, runs: Runs) -> int:
        """Takes messages out of what is on its way; returns how many of them were dead letters."""
        dead = 0
        for key, moving in list(self.items()):
            if key[1] not in ("redrive", "late"):
                dead += count_of(intersection(moving, runs))
            rest = difference(moving, runs)
            if rest:
                self[key] = rest
            else:
                del self[key]
        return dead
