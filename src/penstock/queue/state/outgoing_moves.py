"""Messages of a partition that move to other queues. They are neither ready here, nor gone until the target has them."""

from __future__ import annotations

from penstock.model.origin import Reason
from penstock.model.run_set import RunSet
from penstock.model.runs import Runs, count_of, normalized

MoveKey = tuple[str, Reason]


class OutgoingMoves(dict[MoveKey, RunSet]):
    """Runs by target and reason."""

    def start(self, key: MoveKey, runs: Runs) -> None:
        """Messages leave."""
        self.setdefault(key, RunSet()).add(normalized(runs))

    def load(self, key: MoveKey, runs: Runs) -> None:
        """Some messages from the snapshot, behind those that are there."""
        self.setdefault(key, RunSet()).append(runs)

    def end(self, runs: Runs) -> int:
        """Takes messages out of what is on its way; returns how many of them were dead letters."""
        dead, ended = 0, normalized(runs)
        for key, moving in list(self.items()):
            if key[1] not in ("redrive", "late"):
                dead += count_of(moving.among(ended))
            moving.remove(ended)
            if not moving:
                del self[key]
        return dead
