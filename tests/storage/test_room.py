"""Room for several records: what is refused must not be written in part."""

from __future__ import annotations

import random
from itertools import count

import pytest

from penstock.simulation.disk import SimulatedDisk
from penstock.storage.errors import JournalBusyError
from penstock.storage.store import Store
from tests.storage.keeper import Keeper


@pytest.mark.parametrize("size", [40, 700, 3_000])
def test_records_find_room_one_by_one_exactly_where_they_are_said_to_find_it_together(size: int) -> None:
    row = (b"head", (bytes(size),))
    for filled in range(0, 15_000, 900):
        keeper = Keeper(SimulatedDisk(random.Random(1)))  # no file is ready behind the first one
        store = keeper.store
        numbers = count(1)
        for _ in range(filled // 900):
            store.append(1, next(numbers), b"head", (bytes(800),))
        for wanted in (1, 2, 5, 12):
            start = store.appended_position
            try:
                store.check_room(1, [row] * wanted, reserve=True)
            except JournalBusyError:
                assert not all(_fits(store, next(numbers), row) for _ in range(wanted))
                break
            assert store.appended_position == start
            for _ in range(wanted):
                store.append(1, next(numbers), *row)


def _fits(store: Store, number: int, row: tuple[bytes, tuple[bytes]]) -> bool:
    try:
        store.append(1, number, *row)
    except JournalBusyError:
        return False
    return True
