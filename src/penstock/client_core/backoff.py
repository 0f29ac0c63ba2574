"""How long to wait between attempts, to connect or within a limit: doubling, with jitter, so that many clients do not march
in step."""

from __future__ import annotations

import random
from collections.abc import Iterator

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 2.0


def delays(dice: random.Random) -> Iterator[float]:
    """Without end: from `FIRST_SECONDS` doubling to `LONGEST_SECONDS`, each cut by up to a half."""
    ceiling = FIRST_SECONDS
    while True:
        yield ceiling * dice.uniform(0.5, 1.0)
        ceiling = min(2 * ceiling, LONGEST_SECONDS)


class Slowdown:
    """The pauses of one request that a limit refuses, from its first refusal on."""

    __slots__ = ("_gives_up", "_pauses")

    def __init__(self, gives_up: float, dice: random.Random) -> None:
        self._gives_up = gives_up
        self._pauses = delays(dice)

    def pause(self, now: float) -> float | None:
        """How long to wait before the same is asked again; None: it has waited long enough."""
        pause = next(self._pauses)
        return pause if now + pause <= self._gives_up else None
