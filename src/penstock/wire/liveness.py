"""When a silent peer is pinged, and when it is given up."""

from __future__ import annotations

from enum import Enum


class Sign(Enum):
    """What to do about a peer that may be silent."""

    LIVES = "lives"
    PROBE = "ask whether it is there"
    GIVE_UP = "end the connection"


class Liveness:
    """Counts checks at which a peer was silent while an answer was awaited: after `patience` of them it is pinged at each of
    the next `probes`, then it is given up.
    """

    __slots__ = ("_patience", "_probes", "_silent")

    def __init__(self, patience: int = 0, probes: int = 1) -> None:
        self._patience = patience
        self._probes = probes
        self._silent = 0

    def look(self, *, heard: bool, waits: bool) -> Sign:
        """`heard`: whether anything came since the last check. `waits`: whether an answer is awaited."""
        if heard or not waits:
            self._silent = 0
            return Sign.LIVES
        self._silent += 1
        if self._silent <= self._patience:
            return Sign.LIVES
        return Sign.PROBE if self._silent <= self._patience + self._probes else Sign.GIVE_UP

    def reset(self) -> None:
        """There is a new connection, or a new reason to wait."""
        self._silent = 0
