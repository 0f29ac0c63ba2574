"""What the front end asks of the metadata store: writes. It reads from the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.frontend.steps import DeleteEntry, PutEntry

Written = Callable[[int | Exception | None], None]


class Registry(Protocol):
    """Carries out writes in the background; once `done` is called the cache knows of them."""

    def write(self, step: PutEntry | DeleteEntry, done: Written) -> None:
        """`done` is called once, later, with the new version (None for a removal) or with what went wrong."""
        ...
