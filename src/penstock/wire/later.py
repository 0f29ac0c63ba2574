"""A delayed call, carried out by the owner of a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that will be made later."""

    def cancel(self) -> None:
        """It is not done."""
        ...


Later = Callable[[float, Callable[[], None]], Timer]
"""Does something after so many seconds."""
