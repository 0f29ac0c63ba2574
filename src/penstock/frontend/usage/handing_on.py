"""Sends usage rows to their log: one batch at a time, each repeated until the log has it, in order.

It yields its steps; the runtime and the simulation both run it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from penstock.frontend.usage.internal_log import InternalLog
from penstock.model.batch import encode_one
from penstock.steps.step import Step, Steps
from penstock.usage.batch import UsageBatch
from penstock.usage.collector import UsageCollector

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
"""How long an event waits for company."""
AGAIN_SECONDS = 2.0
"""How long the log is left alone after it could not take a batch."""


class Rest(NamedTuple):
    """A pause. It ends early when `closing` is set, and with `until_many`, when the collector has many rows."""

    seconds: float
    until_many: bool


class UsageHandingOn:
    """Decides what is sent when, and what is sent again."""

    def __init__(
        self, collector: UsageCollector, internal_log: InternalLog, wall_ms: Callable[[], int]
    ) -> None:
        self._collector = collector
        self._log = internal_log
        self._wall_ms = wall_ms
        self.closing = False
        """Set when the process is about to end: waiting rows are sent once."""

    def run(self) -> Generator[Step | Rest, Any, None]:
        """Ends once it is closing, and nothing waits or the log does not take it."""
        collector = self._collector
        while True:
            yield Rest(PAUSE_SECONDS, until_many=True)
            collector.record_sums(None if self.closing else self._wall_ms())
            while (batch := collector.next_batch()) is not None:
                if (yield from self._stored(batch)):
                    collector.reported(batch)
                elif self.closing:
                    return
                else:
                    yield Rest(AGAIN_SECONDS, until_many=False)
                if not collector.has_many and not self.closing:
                    break  # else every few requests of a busy client would be written on their own
            if self.closing:
                return

    def _stored(self, batch: UsageBatch) -> Steps[bool]:
        try:
            body = encode_one(self._collector.stream(batch))
            return (yield from self._log.store(body, batch.producer, batch.batch))
        except Exception:  # one that ends takes the record of all later requests along
            logger.exception(
                "records of requests wait: this is a defect of Penstock; please report it with what follows"
            )
            return False
