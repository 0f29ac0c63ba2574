"""A small store to damage: where its entries are, and what the next start makes of it."""

from __future__ import annotations

import random

from penstock.simulation.disk import SimulatedDisk
from penstock.storage.entry import HEADER_BYTES, OFFSET_MASK
from penstock.storage.errors import Damage
from penstock.storage.journal_file import journal_name
from tests.storage.keeper import Keeper

HEADER, PAYLOAD = 4, HEADER_BYTES + 30
"""Where to flip a bit of an entry."""


def fill(partitions: int = 3, rounds: int = 4) -> tuple[SimulatedDisk, Keeper]:
    """Each partition has a record in each round, and each round is a flush of its own."""
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk)
    keeper.work()
    for number in range(rounds):
        for partition in range(partitions):
            keeper.put(partition, b"%d of %d " % (number, partition) * 10)
        keeper.flush()
    return disk, keeper


def flip(disk: SimulatedDisk, keeper: Keeper, partition: int, index: int, at: int) -> tuple[str, int]:
    """Damages the entry of a record; where it is."""
    position = keeper.partitions[partition].positions[index]
    name, offset = journal_name(position >> 32), position & OFFSET_MASK
    disk.flip_bit(name, offset + at, 3)
    return name, offset


def damages(keeper: Keeper) -> dict[int, Damage]:
    return {damage.partition: damage for damage in keeper.store.recovery.damages}
