"""Draws small sizes for a run and applies them, like planted bugs; the product does not know of it.

A size that separates two paths through the code has no effect in a run that never reaches it. So in a share of the runs
some sizes are small, each with its own random generator, decided by the seed alone. The others keep the values of
production.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any

from penstock.simulation.patching import Patch, patched
from penstock.simulation.sizes.latest_sizes import LATEST
from penstock.simulation.sizes.node_sizes import BACKEND, MEMBERSHIP, OPTIONS, REPLICATION, STORAGE
from penstock.simulation.sizes.queue_sizes import LIMITS, QUEUE, ROUTING
from penstock.simulation.sizes.size import Size
from penstock.simulation.sizes.usage_sizes import USAGE
from penstock.storage.options import StorageOptions

_FIRST: tuple[Size, ...] = (*STORAGE, *BACKEND, *REPLICATION, *MEMBERSHIP, *QUEUE, *ROUTING, *LIMITS)
SIZES: tuple[Size, ...] = (*_FIRST, *LATEST)
_NAMES = frozenset(f"{size.module}.{size.name}" for size in SIZES)
_SHARES = (0.0, 0.0, 0.0, 0.05, 0.2, 0.5)
"""How many of the sizes are small in a run: none in half of the runs."""
_WANTED = 0.7
_PART = "storage.replica_log.IMAGE_PART_BYTES"
_ENTRY_BYTES = 12_288
"""Room for the largest batch in the simulation in a small journal file."""

SmallSizes = Mapping[str, int]
"""By `module.name`, or the name of an option."""

MANY_QUEUES = 40
STEPS_OF_STATES = (
    "model.limits.PAGE_ROWS",
    "queue.snapshot.capture._COLUMN_BYTES",
    "backend.admin.catalogue._QUEUES_AT_ONCE",
)


def draw_sizes(random: Random, wanted: Collection[str] = ()) -> SmallSizes:
    """The small sizes of a run; none if all are as in production. Requested ones are small in most runs."""
    if unknown := sorted(set(wanted) - _NAMES):
        raise LookupError(f"these sizes are wanted small and are in no table: {', '.join(unknown)}")
    share = random.choice(_SHARES)
    found: dict[str, int] = {}
    together: dict[str, int] = {}

    def draw(size: Size) -> None:
        value = random.choice(size.small)
        name = f"{size.module}.{size.name}"
        if random.random() < (_WANTED if name in wanted else share):
            found[name] = value
            together.update(size.together)

    for size in _FIRST:
        draw(size)
    for option in OPTIONS:
        value = random.choice(option.small)
        if random.random() < share:
            found[option.name] = value
    for size in LATEST:
        draw(size)
    return {**found, **together}


def with_small_options(options: StorageOptions, sizes: SmallSizes, *, cluster: bool) -> StorageOptions:
    """The options of a run with those of them that are small."""
    changes: dict[str, Any] = {option.name: sizes[option.name] for option in OPTIONS if option.name in sizes}
    if "journal_file_bytes" in changes:
        if cluster and _PART not in sizes:
            del changes["journal_file_bytes"]  # a part of a state has to fit into a journal file
        else:
            changes["entry_bytes_max"] = (
                _ENTRY_BYTES - 4_096 if changes["journal_file_bytes"] < 20_000 else _ENTRY_BYTES
            )
    return dataclasses.replace(options, **changes)


def put_on(sizes: SmallSizes) -> AbstractContextManager[None]:
    """With these sizes instead of those of production."""
    return patched(_patches(sizes))


def _patches(sizes: SmallSizes) -> Sequence[Patch]:
    found: list[Patch] = []
    for size, modules in _holders():
        value = sizes.get(f"{size.module}.{size.name}")
        if value is not None:
            values: dict[str, Any] = {size.name: value, **size.follows(value)}
            found += [
                (module, name, values[name]) for module in modules for name in values if hasattr(module, name)
            ]
    return found


@cache
def _holders() -> Sequence[tuple[Size, Sequence[ModuleType]]]:
    """The modules with each size; imported now, so that no module is first imported while a size is small."""
    return [
        (size, [import_module(f"penstock.{name}") for name in (size.module, *size.imported_by)])
        for size in (*SIZES, *USAGE)
    ]


def for_queues(sizes: SmallSizes, queues: int) -> SmallSizes:
    """The sizes of a run with so many queues.

    With hundreds of partitions states in the smallest steps keep every node at its checkpoints, a turn each millisecond, for
    minutes.
    """
    if queues < MANY_QUEUES:
        return sizes
    return {name: size for name, size in sizes.items() if name not in STEPS_OF_STATES}


def told(sizes: SmallSizes) -> str:
    """For the trace."""
    return ", ".join(f"{name} = {value}" for name, value in sorted(sizes.items()))
