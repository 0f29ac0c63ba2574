"""Some messages of one partition on their way to one target: how far they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.model.origin import Reason
from penstock.model.runs import Runs

SETTING_OUT = 0
"""No request has this number: among those under way it says that more of them are to come."""

Phase = Literal["starting", "ready", "asking", "under way", "resting"]
JourneyKey = tuple[int, str]
"""(partition that is left, target as the record names it)."""


@dataclass(slots=True, eq=False)
class Journey:
    """Some messages of one partition on their way to one target."""

    source: int
    aim: str
    reason: Reason
    runs: Runs
    since_ms: int
    phase: Phase = "starting"
    """`starting`: a failover could still lose that they left. `asking`: they may be in a queue that is deleted. `resting`: it did not
    work, and is tried again."""
    target: int = 0
    """The partition that they were sent to."""
    again_ms: int | None = None
    """While it rests: when it is tried again; None: when the layout changes."""
    why: str = ""
    """While it rests: what was wrong."""
    under_way: set[int] = field(default_factory=set)
    """Numbers of the requests that were not answered yet."""
    asked: dict[int, bool] = field(default_factory=dict)
    """Partitions of deleted queues that may have taken messages in → whether they have said that they have not."""

    @property
    def key(self) -> JourneyKey:
        """There is one at a time for each."""
        return self.source, self.aim
