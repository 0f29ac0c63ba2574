"""Takes the layout from the metadata's mirror to the node, and what the node wants of it to the store."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from penstock.backend.replication.layout_view import Proposal
from penstock.cluster import layout
from penstock.cluster.layout import NodeEntry, PartitionEntry, encode, partition_key
from penstock.cluster.positions import asked_of, is_led
from penstock.metadata.mirror import MetadataMirror
from penstock.metadata.store.interface import Change, StoreUnavailableError, VersionConflictError
from penstock.model.document import TooOldError
from penstock.runtime.peers.cluster_driver import ClusterDriver
from penstock.runtime.peers.peer_links import PeerLinks
from penstock.runtime.peers.registration import Registration

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""How often it is looked whether a log that somebody asks about has become longer, or damaged."""


class LayoutFollower:
    """Between the mirror, the driver, the links and the registration of one node."""

    def __init__(
        self,
        name: str,
        mirror: MetadataMirror,
        driver: ClusterDriver,
        links: PeerLinks,
        registration: Registration,
    ) -> None:
        self._name = name
        self._mirror = mirror
        self._driver = driver
        self._links = links
        self._registration = registration
        self._nodes: dict[str, NodeEntry] = {}
        self._partitions: dict[int, PartitionEntry] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._look: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """From now on; the mirror may have been filled already."""
        cache = self._mirror.cache
        cache.listen(layout.NODES, self._node_changed)
        cache.listen(layout.PARTITIONS, self._partition_changed)
        self._driver.propose = self._propose
        for entry in cache.list(layout.NODES):
            self._node_changed(Change(*entry))
        for entry in cache.list(layout.PARTITIONS):
            self._partition_changed(Change(*entry))
        self._look_at_positions()

    def _node_changed(self, change: Change) -> None:
        name = change.key.removeprefix(layout.NODES)
        try:
            if change.value is None:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = layout.decode_node(change.value)
        except msgspec.MsgspecError as error:
            log.warning("the entry of node %s cannot be read: %s", name, error)
            return
        self._links.know({name: entry.peers for name, entry in self._nodes.items()})
        self._driver.apply_nodes(self._nodes)
        self._say_positions()

    def _partition_changed(self, change: Change) -> None:
        number = int(change.key.removeprefix(layout.PARTITIONS))
        if change.value is None:
            self._partitions.pop(number, None)
            self._driver.partition_gone(number)
            return
        try:
            entry = layout.decode_partition(change.value)
        except TooOldError as error:
            # What the queue promises now is more than this node knows to keep: it serves it no longer.
            log.error("partition %d is left alone: %s", number, error.message)
            self._partitions.pop(number, None)
            self._driver.partition_gone(number, unreadable=True)
            return
        except msgspec.MsgspecError as error:
            log.warning("the entry of partition %d cannot be read: %s", number, error)
            return
        self._partitions[number] = entry
        self._driver.apply_layout([(entry, change.version)])
        if self._name in entry.replicas and not is_led(entry, self._nodes):
            self._say_positions_soon()

    # -- positions -------------------------------------------------------------------------------------------

    def _say_positions_soon(self) -> None:
        """After all changes that arrive together."""
        if self._look is not None:
            self._look.cancel()
        self._look = asyncio.get_running_loop().call_later(0.0, self._look_at_positions)

    def _look_at_positions(self) -> None:
        self._look = None
        if not self._closed:
            self._say_positions()
            self._look = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_at_positions)

    def _say_positions(self) -> None:
        asked = asked_of(self._name, self._partitions.values(), self._nodes)
        self._registration.say_positions(self._driver.positions(asked))

    # -- proposals -------------------------------------------------------------------------------------------

    def _propose(self, proposal: Proposal) -> None:
        task = asyncio.get_running_loop().create_task(self._put(proposal))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _put(self, proposal: Proposal) -> None:
        partition = proposal.entry.partition
        try:
            await self._mirror.put(partition_key(partition), encode(proposal.entry), proposal.version)
        except VersionConflictError:
            pass  # the mirror has looked what is there now, and has told
        except StoreUnavailableError:
            self._driver.proposal_failed(partition)

    async def close(self) -> None:
        """Stops following; what was asked for may still happen."""
        self._closed = True
        if self._look is not None:
            self._look.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
