"""Patience with Spark: it gives the Python process of a streaming source ten seconds to start, and no setting changes that.

On a machine that does many other things ten seconds may not be enough, which says nothing about what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.pipeline.errors import python_was_lost

T = TypeVar("T")

ATTEMPTS = 10


def patiently(work: Callable[[], T]) -> T:
    """Does it again where all that went wrong is that a process took too long to start."""
    for _ in range(ATTEMPTS - 1):
        try:
            return work()
        except Exception as error:
            if not python_was_lost(error):
                raise
    return work()
