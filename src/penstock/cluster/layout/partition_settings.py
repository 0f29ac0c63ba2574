"""The settings of one partition, from those of its queue."""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.settings import SETTINGS, QueueSettings


def settings_of_partition(settings: QueueSettings) -> QueueSettings:
    """The settings of one partition: limits of the queue are shared out evenly, rounded up."""
    if settings.partitions == 1:
        return settings
    shares = {
        field: -(-limit // settings.partitions)
        for field, setting in SETTINGS.items()
        if setting.row.divided and (limit := getattr(settings, field)) is not None
    }
    return msgspec.structs.replace(settings, **shares)


def carried(share: QueueSettings, entry: PartitionEntry) -> QueueSettings:
    """The settings that a partition goes by now: all of its share, but more replicas only once enough are in sync.

    Otherwise a queue that is given replicas would refuse sends until they have caught up.
    """
    present = entry.settings
    if share.replicas <= present.replicas or len(entry.in_sync) >= share.least_in_sync:
        return share
    return msgspec.structs.replace(share, replicas=present.replicas, min_in_sync=present.min_in_sync)
