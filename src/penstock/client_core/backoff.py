"""How long a client waits between attempts to connect, or when a limit refuses it."""

from __future__ import annotations

import random

from penstock.wire.backoff import Backoff

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 2.0


def backoff(dice: random.Random) -> Backoff:
    """The pauses of a client, with jitter."""
    return Backoff(FIRST_SECONDS, LONGEST_SECONDS, dice)


class Slowdown:
    """The pauses of one request that a limit refuses, from its first refusal on."""

    __slots__ = ("_gives_up", "_pauses")

    def __init__(self, gives_up: float, dice: random.Random) -> None:
        self._gives_up = gives_up
        self._pauses = backoff(dice)

    def pause(self, now: float) -> float | None:
        """How long to wait before the same is asked again; None: it has waited long enough."""
        pause = self._pauses.pause()
        return pause if now + pause <= self._gives_up else None
