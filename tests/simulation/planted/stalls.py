"""Bugs that only stalled connections bring to light: what was sent over one arrives after what its client sent since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.backend.node.request_handlers import RequestHandlers
from penstock.queue.state.producers import ProducerTable
from penstock.simulation.patching import Patch
from penstock.simulation.scenario import Scenario
from penstock.wire.messages import Send


def stalls(scenario: Scenario) -> bool:
    """Whether clients give up connections that stall."""
    return scenario.is_impatient


def older_connections_know_less() -> Sequence[Patch]:
    """A batch that comes over a connection is looked for among those of connections before it, and not of later ones."""
    came: dict[tuple[int, int, int], int] = {}
    present = [0, 0]

    def take(self: RequestHandlers, connection: int, request_id: int, request: Any, *others: Any) -> Any:
        present[:] = (connection, request.queue_id) if isinstance(request, Send) else (0, 0)
        answer = real_take(self, connection, request_id, request, *others)
        if isinstance(request, Send):
            came.setdefault((request.queue_id, request.producer, request.number), connection)
        present[:] = 0, 0
        return answer

    def find(self: ProducerTable, producer: int, number: int) -> Any:
        connection, queue_id = present
        if connection < came.get((queue_id, producer, number), 0):
            return "new"
        return real_find(self, producer, number)

    real_take, real_find = RequestHandlers.take, ProducerTable.find
    return [(RequestHandlers, "take", take), (ProducerTable, "find", find)]
