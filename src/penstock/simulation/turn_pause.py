"""Pauses inside a turn: between a check and the write that relies on it, a process pauses while others continue.

In one thread this is done by letting virtual time pass in the middle of the process's action: events of other machines
happen, its own wait. A process that is killed meanwhile does not continue: its turn ends there.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal, NamedTuple, get_args

Site = Literal["request", "append", "clock", "turn", "output", "peers", "proposal", "flushed"]
"""Before a request, an append, a reading of the clock, a step of a turn, output to clients or to other nodes, a proposal for
the layout; and between a reading of the clock and the report that a flush has ended.
"""
SITES: tuple[Site, ...] = get_args(Site)


class ProcessGone(BaseException):
    """The process was ended while it paused. Not an `Exception`, so that no code under test can survive it."""


class TurnPause(NamedTuple):
    """Pauses at the k-th time that a place is reached."""

    site: Site
    first: int
    duration_ms: int
    when: Callable[[], bool] = lambda: True
    """The condition at the place."""


def draw_pause(random: Random) -> TurnPause:
    """The place and the duration."""
    return TurnPause(
        random.choice(SITES),
        random.randint(1, random.choice((3, 30))),
        random.choice((20, 300, 1_500, 2_500, 5_000)),
    )
