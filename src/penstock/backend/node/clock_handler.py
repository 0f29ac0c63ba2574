"""Answers requests about time. They wait for no disk, and contain the latest possible time of sending.

The sequencer is here too. Its process number changes with each start, so it need not store anything, and still no id is
ever used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.timestamp_id import Sequencer
from penstock.wire.clock_messages import ClockReading, TakenIds

Question = tuple[int, int, ClockInterval | None]
"""The connection, its request, and the known time when it arrived."""


class ClockHandler:
    """Readings of the node's clock, and ids by it."""

    def __init__(
        self, clock: Callable[[], ClockInterval | None], source: str, drift_ppm: int, process: int
    ) -> None:
        self._clock = clock
        self._source = source
        self._drift_ppm = drift_ppm
        self._sequencer = Sequencer(process)
        self._questions: list[Question] = []

    def ask(self, connection: int, request_id: int) -> None:
        """A client asks for the time; the answer is made when it leaves."""
        self._questions.append((connection, request_id, self._clock()))

    def take_ids(self, count: int) -> TakenIds:
        """The next ids of the sequencer."""
        if not 1 <= count <= limits.IDS_PER_REQUEST:
            raise PenstockError(
                ErrorCode.BAD_REQUEST, f"{count} ids: take 1 to {limits.IDS_PER_REQUEST} in a request"
            )
        now = self._clock()
        if now is None:
            raise PenstockError(
                ErrorCode.CLOCK_UNCERTAIN,
                f"the server does not know the time yet: {self._source} has not answered yet (setting clock.source)",
            )
        (time_us, process, counter), size = self._sequencer.take(now, count)
        return TakenIds(time_us, process, counter, size, now.furthest_us(time_us))

    def take(self, connections: Collection[int]) -> list[tuple[int, int, ClockReading]]:
        """The connection, its request and the answer, to those who are still there, to be written now."""
        if not self._questions:
            return []
        questions, self._questions = self._questions, []
        left = self._clock()
        return [
            (connection, request_id, self._reading(came, left))
            for connection, request_id, came in questions
            if connection in connections
        ]

    def _reading(self, came: ClockInterval | None, left: ClockInterval | None) -> ClockReading:
        if came is None or left is None:
            return ClockReading(0, 0, 0, 0, self._drift_ppm, self._source)
        return ClockReading(*came, *left, self._drift_ppm, self._source)
