"""What the front end asks of the metadata store: writes, and a look where the cache may be late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.frontend.steps import MetadataStep

Written = Callable[[int | Exception | None], None]


class Registry(Protocol):
    """Works in the background; once `done` is called the cache knows what came of it."""

    def carry_out(self, step: MetadataStep, done: Written) -> None:
        """`done` is called once, later, with the new version (None where there is none) or with what went wrong."""
        ...
