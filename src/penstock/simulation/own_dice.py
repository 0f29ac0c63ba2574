"""Dice for one purpose alone: whatever they decide, the other dice of a run fall as they did."""

from __future__ import annotations

from random import Random


def own_dice(random: Random, purpose: str) -> Random:
    """Dice that the seed decides as it does these, of which nothing is taken."""
    return Random(f"{purpose}: {random.getstate()[1][:4]}")
