"""A subscription's credit: how many messages a server may send ahead, and which of those are still valid."""

from __future__ import annotations


class Credit:
    """How much of its credit a subscription has used, with a limit for messages that wait at the client."""

    __slots__ = ("_credit", "_handed_out", "buffered", "lease_seconds")

    def __init__(self, credit: int, lease_seconds: float = 0.0) -> None:
        self._credit = credit
        self.buffered = 0
        """Messages that were delivered and wait here."""
        self._handed_out = 0
        """Messages that left the buffer since the server was last given credit for as many."""
        self.lease_seconds = lease_seconds
        """How long a delivery is worth something here; 0: for ever, because its lease is kept alive."""

    def opening(self) -> int:
        """The credit for a new connection: as much as there is room for beside what waits here already."""
        self._handed_out = 0
        return max(1, self._credit - self.buffered)

    def delivered(self, messages: int) -> None:
        """Messages arrived."""
        self.buffered += messages

    def left(self, messages: int) -> None:
        """Messages left the buffer, to be handed out or dropped."""
        self.buffered -= messages

    def handed_out(self, messages: int) -> int:
        """The user has them, or they were dropped; how much credit the server is given for it: half of it at a time."""
        self._handed_out += messages
        if 2 * self._handed_out < self._credit:
            return 0
        given, self._handed_out = self._handed_out, 0
        return given

    def is_over(self, arrived: float, now: float) -> bool:
        """Whether the lease of a delivery ended while it waited here: the server hands its messages out again."""
        return bool(self.lease_seconds) and now > arrived + self.lease_seconds
