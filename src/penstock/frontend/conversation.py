"""Carries out the steps of one action, one after the other, with callbacks and without a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.frontend.services import Services
from penstock.frontend.steps import Ask, DeleteTogether, Reply, SendUnbound, Step, Steps
from penstock.metadata.store.interface import Change
from penstock.model.errors import PenstockError
from penstock.wire.messages import Delivery, Receipt, Receive, Release

Ended = Callable[[Any, Exception | None], None]
WhyNot = Callable[[Change], Exception | None]
"""What is wrong with an action that was allowed, now that something has changed."""


class Conversation:
    """One action under way. `ended` is called once with its result or with what it raised, unless it is cancelled.

    While it waits for a receive it stands among those who wait.
    """

    __slots__ = ("_cancelled", "_ended", "_front", "_has_attempt", "_steps", "_ticket", "_waits", "_why_not")

    def __init__(
        self, front: Services, steps: Steps[Any], ended: Ended, why_not: WhyNot | None = None
    ) -> None:
        self._front = front
        self._steps = steps
        self._ended = ended
        self._why_not = why_not
        self._ticket = 0
        self._waits = self._has_attempt = self._cancelled = False

    def start(self) -> None:
        """Runs to the first step."""
        self._resume(self._steps.send, None)

    def cancel(self) -> None:
        """Nobody waits for the result any more. What has begun is finished; a receive that waits gives up."""
        self._cancelled = True
        self.stop_waiting()

    def stop_waiting(self) -> None:
        """A receive that waits is answered now, with what there is: nothing."""
        if self._waits:
            self._front.engine.cancel(self._ticket)

    def review(self, change: Change) -> None:
        """A receive that waits is refused where its user may receive no longer; what comes for it is given back."""
        if self._waits and not self._cancelled:
            error = self._why_not(change) if self._why_not is not None else None
            if error is not None:
                self.cancel()
                self._ended(None, error)

    def _resume(self, call: Callable[[Any], Step], value: Any) -> None:
        try:
            step = call(value)
        except StopIteration as end:
            if not self._cancelled:
                self._ended(end.value, None)
            return
        except Exception as error:
            if not self._cancelled:
                self._ended(None, error)
            return
        front = self._front
        if isinstance(step, SendUnbound):
            front.sends.send(step.queue_id, step.bodies, step.attributes, self._stored)
        elif isinstance(step, Ask):
            if isinstance(step.request, Receive):
                self._receive(step)
            else:
                self._ticket = front.engine.ask(step.request, step.body, self._answered)
        elif isinstance(step, DeleteTogether):
            front.deletes.delete(step.queue_id, step.receipts, self._answered)
        else:
            front.registry.carry_out(step, self._written)

    def _receive(self, step: Ask) -> None:
        if self._cancelled:  # while the queue was looked up: messages would only be taken to be given back
            self._steps.close()
            return
        # Who gave the attempt a name may ask for the same messages again, so that nothing is given back.
        self._has_attempt = isinstance(step.request, Receive) and bool(step.request.attempt)
        self._ticket = self._front.engine.ask(step.request, step.body, self._answered)
        self._waits = True
        self._front.waiting.add(self)

    def _answered(self, outcome: Reply | PenstockError) -> None:
        waited = self._waits
        if waited:
            self._waits = False
            self._front.waiting.discard(self)
        if isinstance(outcome, PenstockError):
            self._resume(self._steps.throw, outcome)
            return
        if waited and self._cancelled and not self._has_attempt:
            self._give_back(outcome)
        self._resume(self._steps.send, outcome)

    def _stored(self, outcome: Sequence[int] | PenstockError) -> None:
        self._resume(self._steps.throw if isinstance(outcome, PenstockError) else self._steps.send, outcome)

    def _written(self, outcome: int | Exception | None) -> None:
        if isinstance(outcome, Exception):
            self._resume(self._steps.throw, outcome)
        else:
            self._resume(self._steps.send, outcome)

    def _give_back(self, reply: Reply) -> None:
        """Messages for somebody who has gone: they are ready again at once, and as if they had never been received."""
        delivery = reply.answer
        if isinstance(delivery, Delivery) and delivery.batches:
            runs = [(batch.first, batch.count) for batch in delivery.batches]
            self._front.engine.ask(Release([Receipt(delivery.token, runs)], unreceived=True), b"", _ignored)


def _ignored(outcome: Reply | PenstockError) -> None:
    """The lease ends by itself if this did not work."""
