"""Which messages on their way from a partition may be at a target already, as far as the node that leads the partition can know."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.model.run_set import RunSet
from penstock.model.runs import Runs, difference, normalized


class SentMoves:
    """Of one partition in one epoch. A message that leaves its source is on record before it is sent, so no node sent others."""

    def __init__(self, on_their_way: Iterable[RunSet]) -> None:
        """What is on its way when the epoch begins: a primary of before may have sent it anywhere."""
        self._before = [runs.copy() for runs in on_their_way]
        self._sent: dict[int, RunSet] = {}
        """Target → what this node has sent there since, and what is not finished."""

    def sent(self, target: int, runs: Runs) -> None:
        """Messages have set out."""
        self._sent.setdefault(target, RunSet()).add(normalized(runs))

    def finished(self, runs: Runs) -> None:
        """Messages are on their way no longer."""
        ended = normalized(runs)
        for left in (*self._before, *self._sent.values()):
            left.remove(ended)
        self._sent = {target: sent for target, sent in self._sent.items() if sent}

    def may_be_in(self, target: int, runs: Runs) -> Runs:
        """Those of some messages that may have arrived there."""
        wanted, sent = normalized(runs), self._sent.get(target)
        there = self._before if sent is None else (*self._before, sent)
        return normalized(run for known in there for run in known.among(wanted))

    def passing(self, runs: RunSet, closed: Collection[int], messages: int) -> Runs:
        """The first messages, up to so many, of what goes on where some targets cannot be asked: what cannot be there; all, where
        that is none."""
        found: Runs = []
        for block in runs.blocks() if closed else ():
            waiting = normalized(run for target in closed for run in self.may_be_in(target, block))
            found += difference(block, waiting)
            if len(found) >= messages:
                break
        return RunSet(found).first(messages) or runs.first(messages)
