"""What goes wrong in a run: which kind hits which victim, for how long. A seed chooses, so that a run can be told again."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from tests.chaos.network import SHAPES, Shape

Kind = Literal["kill", "pause", "cut", "power"]
"""kill -9; SIGSTOP; cut off from the network; the machine loses its power and every write that was not synced."""
Victim = Literal["node", "primary", "manager", "all nodes", "frontend", "metadata", "etcd", "etcd leader"]

KINDS: dict[Victim, tuple[Kind, ...]] = {
    "node": ("kill", "pause", "cut", "power"),
    "primary": ("kill", "pause", "cut", "power"),
    "manager": ("kill", "pause", "cut", "power"),
    "all nodes": ("kill", "power"),
    "frontend": ("kill", "pause", "cut"),
    "metadata": ("kill", "pause", "cut"),
    "etcd": ("kill", "pause", "cut", "power"),
    "etcd leader": ("kill", "pause", "cut", "power"),
}
SECONDS: dict[Kind, tuple[float, float]] = {
    "kill": (0.0, 5.0),
    "pause": (0.5, 8.0),
    "cut": (1.0, 10.0),
    "power": (0.0, 5.0),
}
"""From less than a lease to more than one."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: Kind
    victim: Victim
    seconds: float
    """For how long it stays so."""
    shape: Shape = "entirely"
    """Of a cut."""

    @property
    def name(self) -> str:
        """As it is counted."""
        how = f" ({self.shape})" if self.kind == "cut" else ""
        return f"{self.kind} {self.victim}{how}"

    def __str__(self) -> str:
        return f"{self.name} for {self.seconds:.1f} s"


def faults(seed: int, count: int, possible: Collection[Kind]) -> Iterator[Fault]:
    """So many faults; every pair of kind and victim that can be is met before any is met again."""
    dice = random.Random(seed)
    deck: list[tuple[Kind, Victim]] = []
    shapes: list[Shape] = []
    for _ in range(count):
        if not deck:
            deck = [(kind, victim) for victim, kinds in KINDS.items() for kind in kinds if kind in possible]
            dice.shuffle(deck)
        kind, victim = deck.pop()
        seconds = dice.uniform(*SECONDS[kind])
        if kind != "cut":
            yield Fault(kind, victim, seconds)
            continue
        if not shapes:
            shapes = list(SHAPES)
            dice.shuffle(shapes)
        yield Fault(kind, victim, seconds, shapes.pop())
