"""Facts about the server for jobs: the limits and the fill of its queues, and the free space on its disk if it is on this
machine.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from penstock.client.blocking.client import BlockingClient
from penstock.client.blocking.connecting import connect_blocking_to_any
from penstock.client.connection.endpoints import endpoint_urls
from penstock.model.errors import ErrorCode, PenstockError
from penstock.pipeline.jobs.job import ServerFacts
from penstock.wire.answers import QueueDescription

INTERNAL = "penstock."
"""The prefix of Penstock's own queues."""
_SECONDS = 30.0


def server_facts_of(endpoint: str) -> ServerFacts:
    """As of now; without what cannot be had, since the rows can be rolled up all the same."""
    now_us = time.time_ns() // 1000
    try:
        queues, directory = _asked(endpoint)
    except PenstockError:
        return ServerFacts(now_us)
    if not os.path.isdir(directory):  # the server is elsewhere
        return ServerFacts(now_us, queues, missing_of=partial(missing_queues, endpoint))
    disk = shutil.disk_usage(directory)
    return ServerFacts(now_us, queues, disk.free, disk.total, missing_of=partial(missing_queues, endpoint))


def missing_queues(endpoint: str, queues: Iterable[tuple[str, int]]) -> frozenset[int]:
    """The ids of those that the server no longer has. A list without them proves nothing: it may be the list of one account;
    and a user without rights to a queue does not learn whether it exists.
    """
    missing: set[int] = set()
    with _connected(endpoint) as client:
        for name, queue_id in queues:
            try:
                if client.describe_queue(name).queue_id != queue_id:
                    missing.add(queue_id)
            except PenstockError as error:
                if error.code is ErrorCode.QUEUE_NOT_FOUND:
                    missing.add(queue_id)
    return frozenset(missing)


def _asked(endpoint: str) -> tuple[tuple[dict[str, Any], ...], str]:
    with _connected(endpoint) as client:
        queues = client.list_queues()
        facts = tuple(queue_facts(one) for one in queues if not one.name.startswith(INTERNAL))
        return facts, _data_directory(client.describe_node)


def _connected(endpoint: str) -> BlockingClient:
    return connect_blocking_to_any(endpoint_urls(endpoint), timeout=_SECONDS, name="penstock pipeline")


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
        "followed": settings.lifecycle,
    }


def _data_directory(describe: Any) -> str:
    try:
        return str(describe().data_directory)
    except PenstockError:  # a cluster is many nodes
        return ""
