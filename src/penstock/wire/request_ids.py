"""The numbers that assign answers to requests."""

from __future__ import annotations

from collections.abc import Container

LARGEST_REQUEST_ID = 0xFFFF_FFFF


class RequestIds:
    """Ids of requests, rising, and from 1 again after the largest. 0 is for the server's messages that answer no request."""

    __slots__ = ("_last",)

    def __init__(self, last: int = 0) -> None:
        self._last = last

    def next(self, *in_use: Container[int]) -> int:
        """The next id that none of these holds."""
        number = self._last
        while True:
            number = number + 1 if number < LARGEST_REQUEST_ID else 1
            for held in in_use:
                if number in held:
                    break
            else:
                self._last = number
                return number
