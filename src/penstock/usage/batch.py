"""A batch of usage: rows of requests on their way to the log."""

from __future__ import annotations

from typing import NamedTuple

from penstock.columnar.arrow import arrow_stream
from penstock.columnar.usage import USAGE
from penstock.usage.event import UsageEvent
from penstock.usage.spool import Spool


class UsageBatch(NamedTuple):
    """Handed on under (`producer`, `batch`), it is stored once however often it is sent."""

    spool: Spool
    front_end: str
    producer: int
    batch: int
    numbers: list[int]
    events: list[UsageEvent]
    end: int
    """Where the spool goes on."""

    def stream(self) -> bytes:
        """The rows as Arrow."""
        events = self.events
        return arrow_stream(
            USAGE,
            [
                [event.time_ms * 1000 for event in events],
                [self.front_end] * len(events),
                self.numbers,
                [event.account for event in events],
                [event.user for event in events],
                [event.address for event in events],
                [event.action for event in events],
                [event.queue for event in events],
                [event.messages for event in events],
                [event.bytes_in for event in events],
                [event.bytes_out for event in events],
                [event.outcome for event in events],
                [event.status for event in events],
                [event.latency_us for event in events],
                [event.request_id for event in events],
            ],
        )
