"""Bugs to plant: numbers of what a failover lost are used again."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.settings import Replication
from penstock.queue.partition import Partition
from penstock.queue.state.leases import LeaseTable
from penstock.replication.primary_secondary.node.follower.follower import Follower
from penstock.replication.primary_secondary.node.leader import leader as leading
from penstock.replication.primary_secondary.node.leader import number_skips as skipping
from penstock.simulation.patching import Patch


def sequence_numbers_come_back() -> Sequence[Patch]:
    """A primary goes on with the number after the last message that it has."""

    def first_number(entry: PartitionEntry, following: int, resumed: int, written: Replication) -> int:
        return following

    return [(skipping, "first_number", first_number)]


def lease_numbers_come_back() -> Sequence[Patch]:
    """A primary goes on with the number after the last lease that it knows of."""

    def begin_epoch(self: LeaseTable, epoch: int) -> None:
        return

    return [(LeaseTable, "begin_epoch", begin_epoch)]


def generations_come_back() -> Sequence[Patch]:
    """A generation of a group is the number of its record, whichever log that is in."""

    def number_of_record(self: Partition, ahead: int = 1) -> int:
        return self.index + ahead

    return [(Partition, "number_of_record", number_of_record)]


def unclean_primaries_keep_everything() -> Sequence[Patch]:
    """A primary that is elected uncleanly leads with what was never committed, and does not try to cut it off."""

    def gives_back(follower: Follower, entry: PartitionEntry, partition: Partition) -> bool:
        return False

    return [(leading, "gives_back", gives_back)]
