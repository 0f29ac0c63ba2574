"""Something that is to be done after a while, by whoever has a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that is to be done later."""

    def cancel(self) -> None:
        """It is not done."""
        ...


Later = Callable[[float, Callable[[], None]], Timer]
"""Does something after so many seconds."""
