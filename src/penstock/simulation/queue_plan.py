"""The plan of a queue: its settings, and the messages of its producers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from penstock.model.settings import QueueSettings


@dataclass(slots=True)
class QueuePlan:
    """A queue and the messages of its producers."""

    name: str
    settings: QueueSettings
    groups: int = 0
    priorities: bool = False
    delays_ms: int = 0
    """The longest delay that a message may ask for; 0: none does."""
    ttls_ms: int = 0
    deduplication: int = 0
    """How many different ids are in use at a time; 0: none."""
    stamped: bool = False
    """Whether producers stamp most of what they send to it."""


def visibility(random: Random) -> int:
    """The duration of a lease if a request names none."""
    return random.choice((300, 1_000, 3_000, 8_000))
