"""Carries out the steps of one routed request, with callbacks and without a task of its own.

Here it is decided what several questions at once come to: all answers, or the first that has something, and what is done
about those that come too late. How a question gets to a node is the world's: sockets, or the simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.send_turns import Turn
from penstock.routing.steps import (
    Ask,
    AskAll,
    AskAnyNode,
    AskFirst,
    Look,
    Outcome,
    Put,
    Remove,
    Reply,
    Step,
    Steps,
    Until,
)
from penstock.wire.send_order import out_of_order

Handle = TypeVar("Handle")
"""A question on its way, as the world knows it."""


class Calls(Protocol[Handle]):
    """Questions to partitions."""

    def start(self, ask: Ask, done: Callable[[Outcome], None]) -> Handle:
        """Asks; `done` is called once, later, never from within."""
        ...

    def cancel(self, call: Handle) -> None:
        """What waits for messages need not wait any longer; its `done` is still called."""
        ...


class World(Protocol[Handle]):
    """What steps are carried out with."""

    @property
    def calls(self) -> Calls[Handle]:
        """Questions to partitions."""
        ...

    def ask_any_node(self, step: AskAnyNode, done: Callable[[Outcome], None]) -> None:
        """Asks whichever node can be reached."""
        ...

    def use_store(self, step: Look | Put | Remove, done: Callable[[Any], None]) -> None:
        """Reads or writes the layout; the outcome is a value or an exception."""
        ...

    def wait_until(self, step: Until, done: Callable[[bool], None]) -> None:
        """Waits for the map."""
        ...


class Errand(Generic[Handle]):
    """One request under way; `ended` is called once."""

    __slots__ = ("_calls", "_cancelled", "_ended", "_outcomes", "_step", "_steps", "_unanswered", "_world")

    def __init__(self, steps: Steps[Reply], world: World[Handle], ended: Callable[[Outcome], None]) -> None:
        self._steps = steps
        self._world = world
        self._ended = ended
        self._calls: list[Handle] = []
        self._outcomes: list[Outcome | None] = []
        self._unanswered = 0
        self._step: Step | None = None
        self._cancelled = False

    def start(self) -> None:
        """Runs to the first step."""
        self._resume(self._steps.send, None)

    def cancel(self) -> None:
        """What waits for messages is to end its wait; it is answered as soon as it has."""
        self._cancelled = True
        for call in self._calls:
            self._world.calls.cancel(call)

    def _resume(self, proceed: Callable[[Any], Step], value: Any) -> None:
        try:
            step = proceed(value)
        except StopIteration as end:
            self._ended(end.value)
        except PenstockError as error:
            self._ended(error)
        except Exception as error:  # a defect is told as one, and stays this request's alone
            told = PenstockError(
                ErrorCode.INTERNAL, f"a defect of the router: {type(error).__name__}: {error}"
            )
            told.__cause__ = error
            self._ended(told)
        else:
            self._carry_out(step)

    def _carry_out(self, step: Step) -> None:
        self._step = step
        world = self._world
        match step:
            case Ask():
                self._calls = [world.calls.start(step, self._answered)]
                if self._cancelled:
                    self.cancel()
            case AskAll(_, turn) if turn is not None:
                turn.enter(partial(self._ask_in_turn, step, turn))
            case AskAll() | AskFirst():
                self._ask_several(step)
            case AskAnyNode():
                world.ask_any_node(step, self._answered)
            case Look() | Put() | Remove():
                world.use_store(step, self._stored)
            case Until():
                world.wait_until(step, partial(self._resume, self._steps.send))

    def _answered(self, outcome: Outcome) -> None:
        self._calls = []
        self._resume(self._steps.throw if isinstance(outcome, PenstockError) else self._steps.send, outcome)

    def _stored(self, outcome: Any) -> None:
        self._resume(self._steps.throw if isinstance(outcome, Exception) else self._steps.send, outcome)

    # -- several at once -------------------------------------------------------------------------------------

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
        start = self._world.calls.start
        if isinstance(step, AskAll):
            self._calls = [start(ask, partial(self._one_of_all, place)) for place, ask in enumerate(asks)]
        else:
            answered = partial(self._one_of_first, step)
            self._calls = [start(ask, partial(answered, place)) for place, ask in enumerate(asks)]
        if self._cancelled:
            self.cancel()

    def _one_of_all(self, place: int, outcome: Outcome) -> None:
        self._outcomes[place] = outcome
        self._unanswered -= 1
        turn = self._step.turn if isinstance(self._step, AskAll) else None
        if turn is not None and isinstance(outcome, PenstockError):
            turn.break_off()
        if not self._unanswered:
            self._calls = []
            self._resume(self._steps.send, self._outcomes)

    def _one_of_first(self, step: AskFirst, place: int, outcome: Outcome) -> None:
        has_something = not isinstance(outcome, PenstockError) and step.has_something(outcome)
        if self._step is not step:  # somebody was quicker
            if has_something:
                assert isinstance(outcome, Reply)
                self._world.calls.start(step.give_back(step.asks[place].partition, outcome), _ignored)
            return
        self._outcomes[place] = outcome
        self._unanswered -= 1
        if has_something:
            self._over()
            self._resume(self._steps.send, (place, outcome))
        elif not self._unanswered:
            outcomes = self._outcomes
            self._over()
            errors = [error for error in outcomes if isinstance(error, PenstockError)]
            if len(errors) == len(outcomes):
                self._resume(self._steps.throw, errors[0])
            else:
                self._resume(self._steps.send, None)

    def _over(self) -> None:
        """The others need not wait any longer."""
        calls, self._calls = self._calls, []
        self._step = None
        for call in calls:
            self._world.calls.cancel(call)


def _ignored(outcome: Outcome) -> None:
    """The lease ends by itself if this did not work."""
