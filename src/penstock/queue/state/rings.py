"""Rings in two packed columns: lists in which an item is appended or removed in one step.

A ring includes the place that begins it, so an empty ring is that place alone.
"""

from __future__ import annotations

from array import array


def link(back: array[int], forth: array[int], place: int, ring: int) -> None:
    """Puts a place at the end of a ring."""
    last = back[ring]
    back[place], forth[place] = last, ring
    forth[last] = back[ring] = place


def unlink(back: array[int], forth: array[int], place: int) -> None:
    """Takes a place out of its ring."""
    previous, following = back[place], forth[place]
    forth[previous], back[following] = following, previous
    back[place] = forth[place] = place
