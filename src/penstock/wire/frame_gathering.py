"""Which frames of one turn of the event loop are written at once, and which together when the turn ends."""

from __future__ import annotations

from penstock.model.batch import Buffer

LONE_TURNS = 8
"""After so many turns with one frame each, the next frame is taken to be a lone one too."""


class FrameGathering:
    """The frames of one connection.

    Frames of one turn are written together: a burst then costs one system call, and the server finds it whole and
    writes it to disk once. While turns have one frame only, it is written at once, for latency; while some have more,
    when the turn ends. (uvloop gathers writes too, yet 16 batches of 10 kB a turn cost 62 µs each that way, and 38 µs
    this way.) A lone frame between two bursts, say the one that deletes all that was received, must not tear the next
    one apart: the server would sync it twice.
    """

    __slots__ = ("_frames", "_gathered", "_gathers", "_lone_turns")

    def __init__(self, *, gathers: bool = False) -> None:
        """`gathers`: a frame waits for the end of the turn even where turns have one frame only."""
        self._gathers = gathers
        self._gathered: list[Buffer] = []
        self._frames = 0
        """So many in this turn."""
        self._lone_turns = LONE_TURNS
        """How many turns with one frame were the last; few: there are bursts."""

    @property
    def is_between_turns(self) -> bool:
        """Whether the next frame is the first of a turn."""
        return not self._frames

    def add(self, frame: list[Buffer]) -> bool:
        """Takes a frame; True: it is not kept, and to be written now."""
        self._frames += 1
        if self._frames == 1 and self._lone_turns >= LONE_TURNS and not self._gathers:
            return True
        self._gathered += frame
        return False

    def end_turn(self) -> list[Buffer]:
        """The turn ends: what is to be written now."""
        self._lone_turns = 0 if self._frames > 1 else self._lone_turns + 1
        self._frames = 0
        gathered, self._gathered = self._gathered, []
        return gathered

    def clear(self) -> None:
        """The connection is gone."""
        self._gathered.clear()
