"""How long to wait between attempts: doubling from a first pause to a longest one, and the pauses for each purpose."""

from __future__ import annotations

from random import Random
from typing import NamedTuple


class Backoff:
    """The pauses of one repeated attempt. With random numbers each is cut by up to a half, so that many that fail at the same
    moment do not try again at the same moment.
    """

    __slots__ = ("_dice", "_first", "_longest", "_next")

    def __init__(self, first: float, longest: float, dice: Random | None = None) -> None:
        self._first = first
        self._longest = longest
        self._dice = dice
        self._next = first

    def pause(self) -> float:
        """How long to wait before the next attempt."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause if self._dice is None else pause * self._dice.uniform(0.5, 1.0)

    def reset(self) -> None:
        """An attempt succeeded: the next pause is the first one again."""
        self._next = self._first


class Pauses(NamedTuple):
    """The first pause and the longest one, in seconds."""

    first: float
    longest: float

    def begin(self, dice: Random | None = None) -> Backoff:
        """Those of one thing that is tried again and again."""
        return Backoff(self.first, self.longest, dice)


class Retry:
    """Attempts at even intervals, until a deadline."""

    __slots__ = ("_deadline", "_pause")

    def __init__(self, pause: float, within: float, now: float) -> None:
        self._pause = pause
        self._deadline = now + within

    def pause(self, now: float) -> float | None:
        """How long to wait before the next attempt; None: the time is over."""
        return self._pause if now <= self._deadline else None


class Reminders:
    """When to log what goes on: the first time, and again after every interval."""

    __slots__ = ("_every", "_said")

    def __init__(self, every_seconds: float) -> None:
        self._every = every_seconds
        self._said: float | None = None

    @property
    def any_yet(self) -> bool:
        """Whether it was logged before."""
        return self._said is not None

    def is_due(self, now: float) -> bool:
        """Whether to log it now; then it counts as logged."""
        if self._said is not None and now < self._said + self._every:
            return False
        self._said = now
        return True


NODE_LINK = Pauses(0.05, 2.0)
"""Between attempts of a front end to connect to its node."""
PEER_STREAM = Pauses(0.05, 1.0)
"""Between attempts of a node to connect to another one."""
STORE_FOLLOWING = Pauses(0.05, 1.0)
"""Between attempts of a metadata server to follow its store."""
STORE_ABSENT_SECONDS = 1.0
"""How long a process that starts waits before it asks a store again that did not answer."""
STORE_ABSENT_SAID_SECONDS = 30.0
"""How often its log says so meanwhile."""
LOCKED_FILE_SECONDS = 0.02
"""Between attempts to change the mode of a database file that another process has locked."""
