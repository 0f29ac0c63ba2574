"""The lease of a delivery at the client: the token, the messages, and which of them are settled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.model.runs import Runs, difference, normalized, runs_of
from penstock.wire.messages import DeliveredBatch, Receipt


class Lease:
    """Messages that were delivered together, under one token."""

    __slots__ = ("__weakref__", "_batches", "_settled", "_settled_runs", "arrived", "token")

    def __init__(self, token: bytes, batches: Sequence[DeliveredBatch], arrived: float) -> None:
        self.token = token
        self.arrived = arrived
        """When it came, by the event loop's clock."""
        self._batches = batches
        self._settled: set[int] = set()
        self._settled_runs: Runs = []

    def runs(self) -> Runs:
        """All messages of the delivery."""
        batches = self._batches
        if len(batches) == 1:
            return [(batches[0].first, batches[0].count)]
        return normalized((batch.first, batch.count) for batch in batches)

    def open_runs(self) -> Runs:
        """The messages that are still to be settled."""
        runs = self.runs()
        if self._settled:
            runs = difference(runs, runs_of(sorted(self._settled)))
        if self._settled_runs:
            runs = difference(runs, normalized(self._settled_runs))
        return runs

    def receipt(self) -> Receipt | None:
        """The receipt for all messages that are not settled; None if there are none."""
        runs = self.open_runs()
        return Receipt(self.token, runs) if runs else None

    def close(self, sequences: Iterable[int]) -> None:
        """The messages are settled, or their lease has ended."""
        self._settled.update(sequences)

    def close_runs(self, runs: Runs) -> None:
        """Like `close`, by runs."""
        self._settled_runs += runs
