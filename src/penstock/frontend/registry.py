"""The interface of the metadata store for the front end: writes, and reads for when the cache may be late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.steps.step import Stored, StoreStep

WriteDone = Callable[[int | Stored | Exception | None], None]


class Registry(Protocol):
    """Works in the background; when `done` is called the cache has the result."""

    def carry_out(self, step: StoreStep, done: WriteDone) -> None:
        """`done` is called once, later, with the outcome of the step or with what went wrong."""
        ...
