"""Log lines about refused connections: at most one line a minute for each kind, with the number of others.

Without this bound a client could fill the log, and the disk, by connecting again and again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

SAID_EVERY_SECONDS = 60.0


class _Kind:
    __slots__ = ("silent_until", "unsaid")

    def __init__(self) -> None:
        self.silent_until = -math.inf
        self.unsaid = 0


class BadConnections:
    """The refused connections of one server. The kinds are fixed in the program, so there are few of them."""

    def __init__(self, logger: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._now = now
        self._kinds: dict[str, _Kind] = {}

    def tell(self, kind: str, sentence: str, **values: object) -> None:
        """Logs a sentence with its values by name, or counts it if its kind was logged within the last minute."""
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _Kind()
        now = self._now()
        if now < known.silent_until:
            known.unsaid += 1
            return
        more, known.unsaid = known.unsaid, 0
        known.silent_until = now + SAID_EVERY_SECONDS
        if more:
            sentence += " (and %(more)d similar ones since the last such line)"
            values["more"] = more
        self._logger.warning(sentence, values)
