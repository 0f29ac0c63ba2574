"""The shutdown of a node over a real store: before it stops it hands over what it leads (`cluster/membership/shutdown.py`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.cluster.layout.decoder import drained_in, nodes_in, partitions_in
from penstock.cluster.layout.entries import DRAINS, NODES, PARTITIONS, PartitionEntry, encode, partition_key
from penstock.cluster.layout.serving import led_by
from penstock.cluster.membership.shutdown import SHUTDOWN_MS, Shutdown
from penstock.cluster.membership.store_requests import Done
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.metadata.store_asking import STORE_ERRORS, failure
from penstock.runtime.cluster.peers.registration import Registration
from penstock.streams.waiting import came

logger = logging.getLogger(__name__)

SHORTEST_WAIT_SECONDS = 0.001


async def shut_down(
    name: str,
    mirror: MetadataMirror,
    registration: Registration,
    seconds: float = SHUTDOWN_MS / 1000,
) -> None:
    """Returns when the node leads nothing that another one could, or when the time is over."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    before = _led(name, mirror)

    def now_ms() -> int:
        return int((loop.time() - began) * 1000)

    shutdown = Shutdown(name, now_ms(), int(seconds * 1000))
    try:
        async with asyncio.timeout(seconds):
            await registration.say_leaving()  # no node hands over to it from now on
        shutdown.leaving_said(now_ms())
    except (StoreUnavailableError, TimeoutError) as error:
        shutdown.leaving_said(now_ms(), str(error) or "the metadata store does not answer")
    await _hand_over(shutdown, mirror, now_ms)
    if shutdown.failure:
        logger.warning("node %(node)s stops: %(reason)s", {"node": name, "reason": shutdown.failure})
    if before:
        left = _led(name, mirror)
        logger.info(
            "handed over %(handed_over)d of %(partitions)d partitions in %(seconds).2f s",
            {"handed_over": before - left, "partitions": before, "seconds": loop.time() - began},
        )


async def _hand_over(shutdown: Shutdown, mirror: MetadataMirror, now_ms: Callable[[], int]) -> None:
    woken = asyncio.Event()
    writes: set[asyncio.Task[None]] = set()

    def changed() -> None:
        shutdown.changed(now_ms())
        woken.set()

    async def write(entry: PartitionEntry, version: int) -> None:
        try:
            outcome = Done(await mirror.put(partition_key(entry.partition), encode(entry), version))
        except STORE_ERRORS as error:
            shutdown.written(entry.partition, failure(error), now_ms())
        else:
            shutdown.written(entry.partition, outcome, now_ms())
        woken.set()

    for prefix in (PARTITIONS, NODES):
        mirror.cache.listen(prefix, lambda _: changed())
    while not shutdown.is_over:
        woken.clear()
        cache = mirror.cache
        living = {node.node: node for node in nodes_in(cache.list(NODES))}
        drained = drained_in(cache.list(DRAINS))
        for entry, version in shutdown.tick(now_ms(), partitions_in(cache.list(PARTITIONS)), living, drained):
            task = asyncio.get_running_loop().create_task(write(entry, version))
            writes.add(task)
            task.add_done_callback(writes.discard)
        next_ms = shutdown.next_ms()
        if next_ms is not None:
            await came(woken, max((next_ms - now_ms()) / 1000, SHORTEST_WAIT_SECONDS))
    for task in list(writes):
        task.cancel()
    await asyncio.gather(*writes, return_exceptions=True)


def _led(name: str, mirror: MetadataMirror) -> int:
    """How many partitions the node is the primary of."""
    return led_by(name, (entry for entry, _ in partitions_in(mirror.cache.list(PARTITIONS))))
