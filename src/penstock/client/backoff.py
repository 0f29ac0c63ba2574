"""How long to wait between attempts to connect: doubling, with jitter, so that many clients do not march in step."""

from __future__ import annotations

import random
from collections.abc import Iterator

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 2.0


def delays(dice: random.Random) -> Iterator[float]:
    """Without end: from `FIRST_SECONDS` doubling to `LONGEST_SECONDS`, each cut by up to a half."""
    ceiling = FIRST_SECONDS
    while True:
        yield ceiling * dice.uniform(0.5, 1.0)
        ceiling = min(2 * ceiling, LONGEST_SECONDS)
