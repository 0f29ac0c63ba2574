"""How Python's collector runs in a server: often and briefly, and never over everything that a partition remembers.

The collector looks for cycles of objects that keep each other. A node with a million leases has two million objects that it would
look at, and none of them is ever part of a cycle. So what has survived two collections is frozen: no collection looks at it again,
and it goes as soon as nothing refers to it, as always. A cycle that lived for so long and is over then is not found. Connections that
are closed leave none (`tests/runtime/processes/test_collector.py`). Where a process has few objects all of them are looked at once in
a while nevertheless.

Measured with a million rows of each, made by records, in milliseconds of processor time (longest collection; `all`: a full one):

| rows | thresholds 20,000, 20, 20 | all | as here | its share of the time before, now |
| --- | --- | --- | --- | --- |
| leases | 26 | 274 | 3.5 | 12 %, 8 % |
| timers | 38 | 274 | 3.3 | 4 %, 2 % |
| receive attempts | 52 | 312 | 5.8 | 9 %, 7 % |
| batches in a session's window | 67 | 694 | 8.4 | 8 %, 7 % |
| groups | 27 | 138 | 3.1 | 9 %, 8 % |
| deduplication ids | 1 | 1 | 1 | |

With more of them at once, and on a busy machine, a full collection took 1.0 to 1.5 s. To count what is frozen takes 33 ms for a
million leases, so that is not done; to ask how many blocks of memory there are takes less than 1 ms.
"""

from __future__ import annotations

import gc
import sys

THRESHOLDS = (10_000, 4, 1_000)
"""A collection after so many more objects; every fifth one also looks at what survived the four before. At Python's 700 objects the
collector ran a hundred times a second under load and took 4 % of the loop's time, to find nothing."""
THAW_SECONDS = 600
FEW_BLOCKS = 500_000
"""Blocks of memory of a process that has few objects: one that has just started has up to 300,000. Looking at all takes 50 ms."""


def begin() -> None:
    """From now on: what is there lives until the end, and need not be looked at."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)


def end() -> None:
    """Collections are as Python makes them again."""
    if _freeze_survivors in gc.callbacks:
        gc.callbacks.remove(_freeze_survivors)
    gc.unfreeze()


def thaw() -> bool:
    """Looks at everything, where that is not much; says whether it did."""
    if sys.getallocatedblocks() > FEW_BLOCKS:
        return False
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return True


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"]:
        gc.freeze()
