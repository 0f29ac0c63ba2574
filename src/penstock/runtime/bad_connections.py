"""Connections that are refused, as the log hears of them: one line for each kind and minute, with how many more there were.

Whoever can connect could otherwise fill the log, and the disk under it, by trying on and on.
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
    """Those of one server. Kinds are words of the program, never of a client, so that they stay few."""

    def __init__(self, logger: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._now = now
        self._kinds: dict[str, _Kind] = {}

    def tell(self, kind: str, sentence: str, *values: object) -> None:
        """Says a sentence, unless one of its kind was said within the last minute; then it is counted."""
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
            self._logger.warning(
                f"{sentence} (and %d more of the kind since the last such line)", *values, more
            )
        else:
            self._logger.warning(sentence, *values)
