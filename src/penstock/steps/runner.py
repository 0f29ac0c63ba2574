"""Carries out the steps of one request, one after the other, with callbacks and without a task.

It decides how the answers to several simultaneous questions are combined (all answers, or the first that has messages),
what happens to answers that come too late, and to a request whose caller no longer waits. A `World` carries out single
steps: over sockets, or in the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from penstock.model.errors import PenstockError
from penstock.steps.step import Ask, AskAll, AskFirst, Outcome, Reply, Single, Step, Steps, Turn
from penstock.wire.send_order import out_of_order

Handle = TypeVar("Handle")
"""A step on its way, as the world knows it."""
Result = TypeVar("Result")
Ended = Callable[[Result | Exception], None]

_SEVERAL = (AskAll, AskFirst)


class World(Protocol[Handle]):
    """Carries out single steps."""

    def start(self, step: Single, done: Callable[[Any], None]) -> Handle | None:
        """Begins a step. `done` is called once, later, never from within, with its outcome or with an exception.

        Returns how to cancel it; None: there is nothing to cancel.
        """
        ...

    def cancel(self, under_way: Handle) -> None:
        """A step that waits for messages need not wait any longer; its `done` is still called."""
        ...


class StepRunner(Generic[Result, Handle]):
    """One request in progress. `ended` is called once with its result or its exception, unless it is abandoned."""

    __slots__ = (
        "_ended",
        "_is_abandoned",
        "_is_stopped",
        "_outcomes",
        "_step",
        "_steps",
        "_unanswered",
        "_under_way",
        "_world",
    )

    def __init__(self, steps: Steps[Result], world: World[Handle], ended: Ended[Result]) -> None:
        self._steps = steps
        self._world = world
        self._ended = ended
        self._step: Step | None = None
        self._under_way: Sequence[Handle | None] = ()
        # Set by steps that ask for several things: most requests have none.
        self._outcomes: list[Outcome | None]
        self._unanswered: int
        self._is_stopped = self._is_abandoned = False

    def start(self) -> None:
        """Runs to the first step."""
        self._resume(self._steps.send, None)

    def stop_waiting(self) -> None:
        """A request that waits for messages is answered with what there is, now or as soon as it would wait."""
        self._is_stopped = True
        self._cancel(self._under_way)

    def abandon(self) -> None:
        """No caller waits for the result any longer: the steps end here, and what still comes is given back."""
        self._is_abandoned = True
        self.stop_waiting()
        self._steps.close()

    # -- one step after the other ----------------------------------------------------------------------------

    def _resume(self, proceed: Callable[[Any], Step], value: Any) -> None:
        try:
            step = proceed(value)
        except StopIteration as end:
            self._ended(end.value)
            return
        except PenstockError as error:
            # The frames that it came through know it too, and the request: that would stay until cycles are collected.
            self._ended(error.with_traceback(None))
            return
        except Exception as error:
            self._ended(error)
            return
        self._step = step
        if isinstance(step, _SEVERAL):
            self._carry_out_several(step)
            return
        try:
            self._under_way = (self._world.start(step, self._done),)
        except Exception as error:  # the request has to be answered, and it alone fails
            self._resume(self._steps.throw, error)
            return
        if self._is_stopped:
            self.stop_waiting()

    def _done(self, outcome: Any) -> None:
        self._under_way = ()
        if self._is_abandoned:
            if isinstance(self._step, Ask) and isinstance(outcome, Reply):
                self._give_back(self._step, outcome)
        elif isinstance(outcome, Exception):
            self._resume(self._steps.throw, outcome)
        else:
            self._resume(self._steps.send, outcome)

    def _give_back(self, asked: Ask, reply: Reply) -> None:
        back = asked.give_back(asked.partition, reply) if asked.give_back is not None else None
        if back is not None:
            self._world.start(back, _ignored)

    # -- several at once -------------------------------------------------------------------------------------

    def _carry_out_several(self, step: AskAll | AskFirst) -> None:
        if isinstance(step, AskAll) and step.turn is not None:
            step.turn.enter(partial(self._ask_in_turn, step, step.turn))
        else:
            self._ask_several(step)

    def _ask_in_turn(self, step: AskAll, turn: Turn, may_ask: bool) -> None:
        if may_ask:
            self._ask_several(step)
            turn.leave()
        else:
            self._resume(self._steps.throw, out_of_order())

    def _ask_several(self, step: AskAll | AskFirst) -> None:
        asks = step.asks
        self._outcomes = [None] * len(asks)
        self._unanswered = len(asks)
        if not asks:
            self._resume(self._steps.send, [] if isinstance(step, AskAll) else None)
            return
        start = self._world.start
        if isinstance(step, AskAll):
            self._under_way = [
                start(ask, partial(self._one_of_all, step, place)) for place, ask in enumerate(asks)
            ]
        else:
            self._under_way = [
                start(ask, partial(self._one_of_first, step, place)) for place, ask in enumerate(asks)
            ]
        if self._is_stopped:
            self.stop_waiting()

    def _one_of_all(self, step: AskAll, place: int, outcome: Outcome) -> None:
        self._outcomes[place] = outcome
        self._unanswered -= 1
        if step.turn is not None and isinstance(outcome, PenstockError):
            step.turn.break_off()
        if not self._unanswered:
            self._done(self._outcomes)

    def _one_of_first(self, step: AskFirst, place: int, outcome: Outcome) -> None:
        has_something = not isinstance(outcome, PenstockError) and step.has_something(outcome)
        if self._step is not step or self._is_abandoned:  # another was quicker, or the caller has gone
            if isinstance(outcome, Reply) and has_something:
                self._give_back(step.asks[place], outcome)
            return
        self._outcomes[place] = outcome
        self._unanswered -= 1
        if has_something:
            self._end_others()
            self._resume(self._steps.send, (place, outcome))
        elif not self._unanswered:
            outcomes = self._outcomes
            self._end_others()
            errors = [error for error in outcomes if isinstance(error, PenstockError)]
            if len(errors) == len(outcomes):
                self._resume(self._steps.throw, errors[0])
            else:
                self._resume(self._steps.send, None)

    def _end_others(self) -> None:
        """The others need not wait any longer."""
        under_way, self._under_way = self._under_way, ()
        self._step = None
        self._cancel(under_way)

    def _cancel(self, under_way: Sequence[Handle | None]) -> None:
        for handle in under_way:
            if handle is not None:
                self._world.cancel(handle)


def not_carried_out(step: Single) -> TypeError:
    """A world that has no way to carry out a step; this is a defect of the steps."""
    return TypeError(f"{type(step).__name__} is not carried out here")


def _ignored(outcome: Any) -> None:
    """The lease ends by itself if this did not work."""
