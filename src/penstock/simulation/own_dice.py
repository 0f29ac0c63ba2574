"""A random generator for one purpose: it does not change the other random choices of a run."""

from __future__ import annotations

from random import Random


def own_dice(random: Random, purpose: str) -> Random:
    """Dice that the seed decides as it does these, of which nothing is taken."""
    return Random(f"{purpose}: {random.getstate()[1][:4]}")
