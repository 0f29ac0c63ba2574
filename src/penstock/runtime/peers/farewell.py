"""The farewell of a node: before it stops it hands over what it leads, within a bounded time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import msgspec

from penstock.cluster.departure import departure
from penstock.cluster.layout import (
    DRAINS,
    NODES,
    PARTITIONS,
    NodeEntry,
    PartitionEntry,
    decode_node,
    decode_partition,
    encode,
    partition_key,
)
from penstock.metadata.mirror import MetadataMirror
from penstock.metadata.store.interface import LeaseEndedError, StoreUnavailableError, VersionConflictError
from penstock.runtime.peers.registration import Registration

log = logging.getLogger(__name__)

FAREWELL_SECONDS = 5.0
"""What is not handed over by then is left to an election."""
GATHER_SECONDS = 0.02
"""Changes that come together are looked at together."""
LOOK_SECONDS = 0.25
WRITES_AT_ONCE = 64


async def say_farewell(
    name: str, mirror: MetadataMirror, registration: Registration, seconds: float = FAREWELL_SECONDS
) -> None:
    """Returns when the node leads nothing that another one could, or when the time is over."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    before = sum(entry.primary == name for entry, _ in _partitions(mirror))
    try:
        async with asyncio.timeout(seconds):
            await registration.say_leaving()  # nobody hands over to it from now on
            await _hand_over(name, mirror)
    except TimeoutError:
        log.warning("not everything could be handed over within %g s", seconds)
    except (StoreUnavailableError, LeaseEndedError) as error:
        log.warning("nothing can be handed over: %s", error)
    if before:
        left = sum(entry.primary == name for entry, _ in _partitions(mirror))
        log.info("handed over %d of %d partitions in %.2f s", before - left, before, loop.time() - began)


async def _hand_over(name: str, mirror: MetadataMirror) -> None:
    changed = asyncio.Event()
    for prefix in (PARTITIONS, NODES):
        mirror.cache.listen(prefix, lambda _: changed.set())
    turns = asyncio.Semaphore(WRITES_AT_ONCE)

    async def write(entry: PartitionEntry, version: int) -> None:
        async with turns:
            try:
                await mirror.put(partition_key(entry.partition), encode(entry), version)
            except VersionConflictError:
                pass  # the mirror has looked what is there now

    while True:
        changed.clear()
        drained = [entry.key.removeprefix(DRAINS) for entry in mirror.cache.list(DRAINS)]
        living = {node.node: node for node in _nodes(mirror)}
        wishes, waits = departure(name, _partitions(mirror), living, drained)
        if not waits:
            return
        await asyncio.gather(*(write(entry, version) for entry, version in wishes))
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await changed.wait()
        except TimeoutError:
            continue
        await asyncio.sleep(GATHER_SECONDS)


def _partitions(mirror: MetadataMirror) -> Iterator[tuple[PartitionEntry, int]]:
    for entry in mirror.cache.list(PARTITIONS):
        try:
            yield decode_partition(entry.value), entry.version
        except msgspec.MsgspecError:
            continue  # whoever follows the layout has said so


def _nodes(mirror: MetadataMirror) -> Iterator[NodeEntry]:
    for entry in mirror.cache.list(NODES):
        try:
            yield decode_node(entry.value)
        except msgspec.MsgspecError:
            continue
