"""Checks what the consumption setting of a queue allows: receiving and deleting, reading a retained log, or both."""

from __future__ import annotations

from penstock.model.batch import DELAYS, TTLS, Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.queue.partition import Partition


def check_has_queue(partition: Partition) -> None:
    """Raises if the queue is only a log: its messages are read by offset and never leased."""
    if not partition.settings.has_queue:
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            f"queue {partition.name!r} is a log (consumption 'log'): its messages are retained, so read it by offset "
            "or through a group of readers",
        )


def check_fits_log(partition: Partition, batch: Batch) -> None:
    """Raises where messages ask for what only a queue that is received from can give them."""
    if batch.columns & (DELAYS | TTLS) and not partition.settings.has_queue:
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            f"queue {partition.name!r} is a log (consumption 'log'): it has no delays and no times to live of single "
            "messages; its retention_ms and retain_bytes are for all of them",
        )
