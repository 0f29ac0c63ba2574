"""The waiting times of the internal manager, and how much it does at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """Times in milliseconds."""

    positions_wait_ms: int = 250
    """How long an election waits for living replicas in sync that have not reported the lengths of their logs."""
    restart_wait_ms: int = 5_000
    """So long an `async` partition waits for the rest of its replicas where those that live have all just started:
    after a power cut the one that comes back first need not be the one with the longest log."""
    replace_after_ms: int = 300_000
    """A node gone for so long is no longer waited for: its replicas are made elsewhere."""
    abandoned_ms: int = 600_000
    """A partition without a queue is given up at this age: the creator of the queue has died."""
    never_abandoned_ms: int = 3_600_000
    """One that is as old as this is left alone: its queue was made, and something else has happened to it."""
    settle_ms: int = 1_000
    """How long an entry must be unchanged before replicas are moved."""
    trust_after_ms: int = 10_000
    """A node is given primaries of others once it has lived for so long."""
    hand_over_ms: int = 2_000
    """A primary that has not handed over by then is helped (`sync`) or left in peace (`async`)."""
    repairs_at_once: int = 16
    """How many partitions may get a new replica, or be moved off a drained node, at once."""
    moves_at_once: int = 4
    """So many partitions at once are moved only to spread them better."""
    busy_load: float = 0.75
    """A node as busy as this is given nothing only to spread partitions better."""
