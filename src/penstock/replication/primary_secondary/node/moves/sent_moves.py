"""Which messages on their way from a partition may be at a target already, as far as the node that leads the partition can know."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.runs import Runs, difference, intersection, normalized


class SentMoves:
    """Of one partition in one epoch. A message that leaves its source is on record before it is sent, so no node sent others."""

    def __init__(self, on_their_way: Iterable[Runs]) -> None:
        """What is on its way when the epoch begins: a primary of before may have sent it anywhere."""
        self._before = normalized(run for runs in on_their_way for run in runs)
        self._sent: dict[int, Runs] = {}
        """Target → what this node has sent there since, and what is not finished."""

    def sent(self, target: int, runs: Runs) -> None:
        """Messages have set out."""
        self._sent[target] = normalized([*self._sent.get(target, []), *runs])

    def finished(self, runs: Runs) -> None:
        """Messages are on their way no longer."""
        ended = normalized(runs)
        self._before = difference(self._before, ended)
        left = {target: difference(sent, ended) for target, sent in self._sent.items()}
        self._sent = {target: sent for target, sent in left.items() if sent}

    def may_be_in(self, target: int, runs: Runs) -> Runs:
        """Those of some messages that may have arrived there."""
        return intersection(normalized(runs), normalized([*self._before, *self._sent.get(target, [])]))

    def passing(self, runs: Runs, closed: Iterable[int]) -> Runs:
        """What goes on where some targets cannot be asked: what cannot be there; all, where that is none."""
        waiting = normalized(run for target in closed for run in self.may_be_in(target, runs))
        return (difference(runs, waiting) or runs) if waiting else runs
