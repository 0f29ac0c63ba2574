"""Replaces attributes of modules and classes for the length of a run, and puts the former ones back; the product knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

Patch = tuple[Any, str, Any]
"""(owner, attribute, what to put there)."""

Patches = Callable[[], Sequence[Patch]]
"""Makes the patches of one run. Worker processes of a campaign import it by its name, so it may be no lambda there."""


def no_patches() -> Sequence[Patch]:
    """A run of the product as it is."""
    return ()


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """With these patches on."""
    with ExitStack() as stack:
        for owner, attribute, replacement in patches:
            stack.callback(setattr, owner, attribute, getattr(owner, attribute))
            setattr(owner, attribute, replacement)
        yield
