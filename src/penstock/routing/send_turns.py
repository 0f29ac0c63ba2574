"""Sends of one producer to one queue are handed to the lines of its partitions in the order of arrival.

Some must first ask which partition owns an id (`claiming`), others need not. They ask at the same time, and send in turn.
If one fails before its turn, it is in no line and its client may send it again, so those that follow it fail as well. The
same holds for one that is sent in shares while a share of it has failed: that share has left its line, and the send is
answered only when all its shares are. This also holds on queues without an order, where no ids are asked for and no send
waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

_Key = tuple[int, int]
Entered = Callable[[bool], None]
"""Called when it is a send's turn; False: one that it follows has failed."""


class Turn:
    """The turn of one send."""

    __slots__ = ("_entered", "_follows", "_has_left", "_is_broken", "_key", "_turns")

    def __init__(self, turns: SendTurns, key: _Key, *, follows: bool) -> None:
        self._turns = turns
        self._key = key
        self._follows = follows
        self._is_broken = False
        self._has_left = False
        self._entered: Entered | None = None

    def enter(self, entered: Entered) -> None:
        """Calls back when all earlier sends were sent or have failed; at once if there are none."""
        self._entered = entered
        self._turns.go_on(self._key)

    def leave(self, *, failed: bool = False) -> None:
        """It was sent, or has failed; more than once is as good as once."""
        if self._has_left:
            return
        self._has_left = True
        line = self._turns.lines[self._key]
        place = line.index(self)
        if failed and place + 1 < len(line):
            line[place + 1].follow_failed()
        line.remove(self)
        self._turns.go_on(self._key)

    def break_off(self) -> None:
        """A share of it has failed: until it ends no send that follows it may be stored."""
        self._turns.broken.setdefault(self._key, set()).add(self)
        for turn in self._turns.lines.get(self._key, ()):
            if turn is not self:
                turn.follow_failed()

    def end(self) -> None:
        """It is answered, well or not."""
        self.leave()
        broken = self._turns.broken.get(self._key)
        if broken is not None:
            broken.discard(self)
            if not broken:
                del self._turns.broken[self._key]

    def follow_failed(self) -> None:
        """The send before it has failed."""
        self._is_broken = self._follows

    def call_back(self) -> bool:
        """It is the first; whether it was waiting for that."""
        entered, self._entered = self._entered, None
        if entered is None:
            return False
        entered(not self._is_broken)
        return True


class SendTurns:
    """The turns of all sends in progress that may have to wait."""

    def __init__(self) -> None:
        self.lines: dict[_Key, deque[Turn]] = {}
        """By queue and producer."""
        self.broken: dict[_Key, set[Turn]] = {}
        """Sends that are not answered yet and of which a share has failed."""
        self._going: set[_Key] = set()

    def take(self, queue_id: int, producer: int, *, follows: bool) -> Turn:
        """The turn of a send that comes now. `follows`: it must not be stored without the one before it."""
        key = (queue_id, producer)
        turn = Turn(self, key, follows=follows)
        if self.is_broken(queue_id, producer):
            turn.follow_failed()
        self.lines.setdefault(key, deque()).append(turn)
        return turn

    def is_broken(self, queue_id: int, producer: int) -> bool:
        """Whether a send that follows others may not be stored now: one of them is not answered, and a share of it has failed."""
        return (queue_id, producer) in self.broken

    def go_on(self, key: _Key) -> None:
        """The first one may send."""
        if key in self._going:
            return  # the loop below continues with it: many may wait, and each starts the next one
        self._going.add(key)
        line = self.lines[key]
        try:
            while line:
                first = line[0]
                if not first.call_back() or (line and line[0] is first):
                    break
        finally:
            self._going.discard(key)
            if not line:
                del self.lines[key]
