"""Carries out the steps of actions: with the engine, the gathered batches, and the metadata store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.frontend.batching.gathered_deletes import GatheredDeletes
from penstock.frontend.batching.gathered_sends import GatheredSends
from penstock.frontend.engine import EngineLink
from penstock.frontend.registry import Registry
from penstock.steps.runner import not_carried_out
from penstock.steps.step import Ask, DeleteTogether, Look, Put, Remove, SendUnbound, Single
from penstock.wire.messages import Receive


class FrontEndWorld:
    """See `World`. A step in progress is the ticket of a receive."""

    def __init__(
        self, engine: EngineLink, registry: Registry, later: Callable[[Callable[[], None]], object]
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._sends = GatheredSends(engine, later)
        self._deletes = GatheredDeletes(engine, later)

    def start(self, step: Single, done: Callable[[Any], None]) -> int | None:
        """See `World`."""
        match step:
            case SendUnbound():
                self._sends.send(step.queue_id, step.bodies, step.attributes, done)
            case Ask():
                ticket = self._engine.ask(step.request, step.body, done)
                return ticket if isinstance(step.request, Receive) else None
            case DeleteTogether():
                self._deletes.delete(step.queue_id, step.receipts, done)
            case Look() | Put() | Remove():
                self._registry.carry_out(step, done)
            case _:
                raise not_carried_out(step)
        return None

    def cancel(self, under_way: int) -> None:
        """See `World`."""
        self._engine.cancel(under_way)
