"""Frees an unused state in small steps: to free a million rows at once takes half a second.

Only containers are emptied: large ones, and those that contain large ones. A column is one object and is freed with its
container. The state must have no user any more, because a user would find it empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from penstock.model.run_set import RunSet
from penstock.ordering.pending_runs import PendingRuns
from penstock.queue.log.reader_groups import ReaderGroup
from penstock.queue.ready.lanes import Lane
from penstock.queue.state.chunk import Chunk
from penstock.queue.state.lease import Lease

ROWS_AT_ONCE = 512
"""So many rows are freed in a step."""
_FEW = 64
"""A container with at most so many rows is freed with the container around it."""
_BYTES_OF_A_ROW = 1_024
"""The columns of a chunk weigh what so many bytes each do: to give back large pieces of memory takes its time."""
_PACKAGES = ("penstock.queue.", "penstock.ordering.", "penstock.model.")
_NOT_ITS_OWN = "_table"
"""Under this name tables refer to the messages of their partition, which may still be in use."""
_ROWS_WITH_ROWS = (PendingRuns, ReaderGroup, Lane)
"""Rows of tables that hold many rows themselves."""

_Container = dict[object, object] | list[object] | deque[object] | set[object]


def is_large(roots: Sequence[object]) -> bool:
    """Whether freeing these takes more than a step."""
    rows = 0
    for container in _containers(roots):
        rows += len(container)
        if rows <= ROWS_AT_ONCE:
            rows += sum(map(_weight, _rows(container)))
        if rows > ROWS_AT_ONCE:
            return True
    return False


def taken_apart(roots: Sequence[object]) -> Iterator[None]:
    """Empties all that these hold, some rows between two steps."""
    left = _containers(roots)
    freed = 0
    while left:
        container = left[-1]
        taken = _some(container)
        if not container:
            left.pop()
        while taken:
            row = taken.pop()
            weight = _weight(row)
            if weight <= _FEW or isinstance(row, Lease | Chunk):  # a hand-over may use the runs of a lease
                freed += weight
            elif isinstance(row, dict | list | deque | set):
                left.append(row)
            else:
                left += _containers([row])
            del row
            if freed >= ROWS_AT_ONCE:
                yield
                freed = 0


def _weight(row: object) -> int:
    """How many rows go with a row."""
    if isinstance(row, dict | list | deque | set):
        if len(row) > _FEW:
            return len(row)
        return 1 + sum(map(_weight, _rows(row)))
    if isinstance(row, _ROWS_WITH_ROWS):
        return 1 + sum(map(len, _containers([row])))
    if isinstance(row, Chunk):
        return 1 + row.memory_bytes() // _BYTES_OF_A_ROW
    if isinstance(row, Lease | RunSet):
        return 1 + len(row)
    return 1


def _rows(container: _Container) -> Iterable[object]:
    return container.values() if isinstance(container, dict) else container


def _some(container: _Container) -> list[object]:
    """Takes rows out of a container, fewer where they are containers: all rows of one are of one kind."""
    if not container:
        return []
    take: Callable[[], object] = (
        (lambda: container.popitem()[1]) if isinstance(container, dict) else container.pop
    )
    taken = [take()]
    is_flat = not isinstance(taken[0], dict | list | deque | set)
    most = min(ROWS_AT_ONCE if is_flat else 1 + ROWS_AT_ONCE // (_FEW + 1), 1 + len(container))
    taken += [take() for _ in range(most - 1)]
    return taken


def _containers(roots: Sequence[object]) -> list[_Container]:
    """The containers of objects, of the objects that they consist of, and of those of these."""
    found: list[_Container] = []
    seen: set[int] = set()
    left = list(roots)
    while left:
        top = left.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        if isinstance(top, dict | list | deque | set):
            found.append(top)
        elif type(top).__module__.startswith(_PACKAGES) and not isinstance(top, msgspec.Struct | tuple):
            left += _parts(top)
    return found


def _parts(whole: object) -> list[object]:
    names = [name for kind in type(whole).__mro__ for name in getattr(kind, "__slots__", ())]
    slots = {name: getattr(whole, name, None) for name in names}
    parts: dict[str, object] = {**slots, **getattr(whole, "__dict__", {})}
    parts.pop(_NOT_ITS_OWN, None)
    return list(parts.values())
