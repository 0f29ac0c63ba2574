"""The kinds of order that are held against each other: one queue each, in one server."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.client.queue_options import QueueOptions


@dataclass(frozen=True, eq=False)
class Mode:
    """A kind of order, as a queue has it."""

    name: str
    """For machines; the queue's name too."""
    title: str
    options: QueueOptions = field(default_factory=QueueOptions)
    groups: int = 0

    @property
    def sorted(self) -> bool:
        """Whether producers' stamps order it, so that messages may be late."""
        return "window" in self.options

    @property
    def queue_options(self) -> QueueOptions:
        """With a visibility timeout that no round can outlast."""
        return {**self.options, "visibility_timeout": 600}


BEST_EFFORT = Mode("best-effort", "best-effort")
GROUPS = 1_000
WINDOWS_MS = (0, 10, 100)

MODES = (
    BEST_EFFORT,
    Mode("fifo", "fifo, one group", {"ordering": "fifo"}),
    Mode("fifo-groups", f"fifo, {GROUPS:,} groups", {"ordering": "fifo"}, GROUPS),
    Mode("clock-server", "clock, server stamps", {"ordering": "clock"}),
    *(
        Mode(
            f"clock-producer-{window_ms}",
            f"clock, producer stamps, {window_ms} ms",
            {"ordering": "clock", "stamps": "producer", "window": window_ms / 1_000},
        )
        for window_ms in WINDOWS_MS
    ),
    *(
        Mode(
            f"causal-{window_ms}",
            f"causal, {window_ms} ms",
            {"ordering": "causal", "window": window_ms / 1_000},
        )
        for window_ms in WINDOWS_MS
    ),
)
