"""What is done to the processes of a cluster, and how it is undone. A seed chooses, so that a run can be told again."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from penstock.runtime.local_cluster import running
from penstock.runtime.local_cluster.cluster import LocalCluster

Kind = Literal["kill", "pause", "restart"]
Victim = Literal["node", "manager", "frontend", "metadata", "etcd", "primary"]

KINDS: tuple[Kind, ...] = ("kill", "kill", "pause", "restart")
VICTIMS: tuple[Victim, ...] = ("node", "primary", "manager", "frontend", "node", "primary", "etcd")
PAUSE_SECONDS = (0.5, 6.0)
"""From less than a lease to more than one."""
DOWN_SECONDS = (0.0, 5.0)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: Kind
    victim: Victim
    seconds: float
    """For how long it stays so."""

    def __str__(self) -> str:
        return f"{self.kind} {self.victim} for {self.seconds:.1f} s"


def faults(seed: int, count: int, victims: tuple[Victim, ...] = VICTIMS) -> Iterator[Fault]:
    """So many faults; every victim is met before any is met again."""
    dice = random.Random(seed)
    turn: list[Victim] = []
    for _ in range(count):
        if not turn:
            turn = list(victims)
            dice.shuffle(turn)
        kind = dice.choice(KINDS)
        low, high = PAUSE_SECONDS if kind == "pause" else DOWN_SECONDS
        yield Fault(kind, turn.pop(), dice.uniform(low, high))


def strike(cluster: LocalCluster, kind: Kind, name: str) -> None:
    """Does it to a process."""
    if kind == "kill":
        cluster.kill(name)
    elif kind == "pause":
        running.tell(cluster.state.running[name], signal.SIGSTOP)
    else:
        cluster.stop(name)


def heal(cluster: LocalCluster, kind: Kind, name: str) -> None:
    """Undoes it."""
    if kind == "pause":
        running.tell(cluster.state.running[name], signal.SIGCONT)
    else:
        cluster.start(name)
