"""What a job wants to know of the server: the limits and the fill of its queues, and room on the disk where it is near."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

from penstock.client.blocking.client import connect_blocking
from penstock.model.errors import PenstockError
from penstock.pipeline.jobs.job import Surroundings
from penstock.wire.answers import QueueDescription

INTERNAL = "penstock."
"""What the names of queues begin with that Penstock keeps for itself."""
_SECONDS = 30.0


def surroundings_of(endpoint: str) -> Surroundings:
    """As of now; without what cannot be had, since the rows can be rolled up all the same."""
    now_us = time.time_ns() // 1000
    endpoints = endpoint.split(",")
    for one in endpoints:  # they stand in for one another
        try:
            queues, directory = _asked(one.strip(), _SECONDS / len(endpoints))
            break
        except PenstockError:
            continue
    else:
        return Surroundings(now_us)
    if not os.path.isdir(directory):  # the server is elsewhere
        return Surroundings(now_us, queues)
    disk = shutil.disk_usage(directory)
    return Surroundings(now_us, queues, disk.free, disk.total)


def _asked(endpoint: str, seconds: float) -> tuple[tuple[dict[str, Any], ...], str]:
    url = endpoint if "://" in endpoint else f"penstock://{endpoint}"
    with connect_blocking(url, timeout=seconds, name="penstock pipeline") as client:
        queues = client.list_queues()
        facts = tuple(queue_facts(one) for one in queues if not one.name.startswith(INTERNAL))
        return facts, _data_directory(client.describe_node)


def queue_facts(queue: QueueDescription) -> dict[str, Any]:
    """Limits and fill."""
    settings, now = queue.settings, queue.statistics
    is_log = not settings.has_queue
    return {
        "name": queue.name,
        "queue_id": queue.queue_id,
        "messages": now.log_messages
        if is_log
        else now.ready + now.leased + now.delayed + now.held + now.moving,
        "bytes": now.log_bytes if is_log else now.bytes,
        "max_messages": settings.max_messages,
        "max_bytes": settings.max_bytes,
        "retention_ms": settings.retention_ms,
        "oldest_sent_ms": now.oldest_sent_ms,
        "partitions": settings.partitions,
        "is_log": is_log,
    }


def _data_directory(describe: Any) -> str:
    try:
        return str(describe().data_directory)
    except PenstockError:  # a cluster is many nodes
        return ""
