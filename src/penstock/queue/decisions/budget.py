"""The budget of a receive: how many messages and bytes it may still take."""

from __future__ import annotations

from array import array
from itertools import accumulate


class Budget:
    """The messages and bytes that a receive may still take. The first message always fits."""

    __slots__ = ("bytes", "messages", "taken")

    def __init__(self, messages: int, size: int) -> None:
        self.messages = messages
        self.bytes = size
        self.taken = 0

    def spent(self) -> bool:
        """Whether nothing more may be taken."""
        return self.messages <= 0 or (self.bytes <= 0 and self.taken > 0)

    def take(self, sizes: array[int]) -> int:
        """How many of the next messages, of these sizes, fit; they count as taken."""
        if len(sizes) > self.messages:
            sizes = sizes[: self.messages]
        count, total = len(sizes), sum(sizes)
        if total > self.bytes:
            fitting = sum(1 for reached in accumulate(sizes) if reached <= self.bytes)
            count = max(fitting, 0 if self.taken else 1)
            total = sum(sizes[:count])
            self.bytes = min(self.bytes, total)  # ends the receive, to keep the order
        self.messages -= count
        self.bytes -= total
        self.taken += count
        return count

    def take_one(self, size: int) -> bool:
        """Whether one more message of this size fits; it counts as taken."""
        if size > self.bytes and self.taken:
            self.bytes = 0  # ends the receive, to keep the order
            return False
        self.messages -= 1
        self.bytes -= size
        self.taken += 1
        return True
