"""A simulated person or program, written top to bottom as a generator that yields what it waits for.

reply = yield Ask(client, request)      the answer, or None when the connection was lost or time ran out
yield Pause(50)                         50 ms of simulated time
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol, TypeVar

from penstock.simulation.schedule import Schedule
from penstock.wire.messages import Answer, Request

Result = TypeVar("Result")

ASK_TIMEOUT_MS = 8_000


class Reply(NamedTuple):
    """An answer and its body."""

    answer: Answer
    body: memoryview
    again: bool = False
    """Whether it answers a settlement of which an earlier attempt may have been carried out."""


class Asker(Protocol):
    """Can send a request to the node."""

    def ask(
        self, request: Request, body: bytes, timeout_ms: int, done: Callable[[Reply | None], None]
    ) -> None: ...


class Pause(NamedTuple):
    """Wait that long."""

    duration_ms: int


class Ask(NamedTuple):
    """Send a request and wait for its answer."""

    asker: Asker
    request: Request
    body: bytes = b""
    timeout_ms: int = ASK_TIMEOUT_MS


Steps = Generator[Pause | Ask, Reply | None, Result]


class Tasks:
    """All running generators."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.active = 0

    def start(self, steps: Steps[None], delay_ms: int = 0) -> None:
        """Lets a generator run from its beginning."""
        self.active += 1
        self._schedule.after(delay_ms, lambda: self._go_on(steps, None))

    def _go_on(self, steps: Steps[None], reply: Reply | None) -> None:
        try:
            wait = steps.send(reply)
        except StopIteration:
            self.active -= 1
            return
        if isinstance(wait, Pause):
            self._schedule.after_rest(wait.duration_ms, lambda: self._go_on(steps, None))
        else:
            wait.asker.ask(wait.request, wait.body, wait.timeout_ms, lambda reply: self._go_on(steps, reply))
