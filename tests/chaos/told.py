"""What the clients of a run were told: into the ledger, and how far each of them has come."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.ledger import Ledger

VISIBILITY_SECONDS = 10
RETRY_SECONDS = 0.1
WAIT_SECONDS = 1


@dataclass
class Told:
    """Shared by all clients of a run, which take turns (they share an event loop)."""

    ledger: Ledger
    patient: bool
    """Whether senders take an error that says to try again; else the tries of their libraries must be enough."""
    sent: Counter[str] = field(default_factory=Counter)
    """By client: acknowledged sends."""
    received: Counter[str] = field(default_factory=Counter)
    """By queue."""
    refused: Counter[str] = field(default_factory=Counter)
    """By what clients did: how often they were told to try again."""
    silences: dict[str, float] = field(default_factory=dict)
    """By queue: the longest time in which none of its senders was acknowledged, in seconds."""
    senders_end: asyncio.Event = field(default_factory=asyncio.Event)
    receivers_end: asyncio.Event = field(default_factory=asyncio.Event)
    _last: dict[str, float] = field(default_factory=dict)

    def acknowledged(self, queue: str, sender: str, message: str) -> None:
        """A send was answered well."""
        self.ledger.acknowledge(message)
        self.sent[sender] += 1
        now = time.monotonic()
        silence = now - self._last.get(queue, now)
        self.silences[queue] = max(silence, self.silences.get(queue, 0.0))
        self._last[queue] = now

    def given(self, queue: str, messages: list[str], asked: float, *, ordered: bool) -> None:
        """A receive was answered with messages."""
        answered = time.monotonic()
        for message in messages:
            self.ledger.receive(message, asked, answered)
        if ordered:
            self.ledger.receive_in_order(messages)
        for message in messages:
            self.ledger.ask_to_delete(message)
        self.received[queue] += len(messages)

    async def failed(self, what: str, why: str, *, retryable: bool) -> None:
        """A call failed for good. In a crash clients see errors that say: try again. Any other is a broken promise."""
        if not retryable:
            self.ledger.violations.append(f"a client that wanted to {what} was told {why}")
        elif what == "send" and not self.patient:
            self.ledger.violations.append(f"a client's send failed after its own tries: {why}")
        self.refused[what] += 1
        await asyncio.sleep(RETRY_SECONDS)
