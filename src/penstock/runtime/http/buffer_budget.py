"""What all connections of a server together may keep of requests and answers, and who has to go where that is too much.

A request that is whole is answered soon. One that is not can stay as it is until its time is over, and its sender may be a
stranger. So new bytes are not refused while there are older requests that are not whole: the oldest of those goes, first on
connections on which no request was served before.
"""

from __future__ import annotations

from typing import Protocol

from penstock.runtime.http.answers import Refusal

OVERLOADED = "The server holds as many requests as it can; try again in a moment."


class Sender(Protocol):
    """A connection on which a request may be arriving."""

    @property
    def served(self) -> bool: ...
    def refuse(self, refusal: Refusal) -> None: ...


class BufferBudget:
    """Of one server."""

    __slots__ = ("_most_bytes", "_served", "_strangers", "used_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.used_bytes = 0
        """What is kept now."""
        self._strangers: dict[Sender, None] = {}
        """Connections with bytes of a request that is not whole, the one that has waited longest first: those that were not served
        before."""
        self._served: dict[Sender, None] = {}
        """The others."""

    def count(self, size: int) -> None:
        """So much more is kept, or less."""
        self.used_bytes += size

    def takes(self, sender: Sender, grown_bytes: int, *, is_unfinished: bool) -> bool:
        """Counts the bytes that a connection holds of requests that were not taken yet; False if they are too many.

        `is_unfinished`: some of it is a request that is not whole.
        """
        self.used_bytes += grown_bytes
        if not is_unfinished:
            self._leave(sender)
        elif sender not in self._strangers and sender not in self._served:
            (self._served if sender.served else self._strangers)[sender] = None
        return grown_bytes <= 0 or self.has_room(sender, 0)

    def has_room(self, sender: Sender, size: int) -> bool:
        """Whether a connection may keep so much more; others may have been refused for it."""
        while self.used_bytes + size > self._most_bytes:
            oldest = next(iter(self._strangers or self._served), None)
            if oldest is None or oldest is sender:
                return False
            self._leave(oldest)
            oldest.refuse(Refusal(503, OVERLOADED))
        return True

    def _leave(self, sender: Sender) -> None:
        self._strangers.pop(sender, None)
        self._served.pop(sender, None)
