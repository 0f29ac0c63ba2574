"""Passes the layout from the metadata's mirror to the node, and the node's proposals to the store.

`cluster/membership/node_layout.py` decides what an entry means for a node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from penstock.cluster.layout.entries import encode, partition_key
from penstock.cluster.membership.node_layout import (
    FOLLOWED,
    ApplyEntry,
    ApplyNodes,
    Effect,
    EntryGone,
    NodeLayout,
    OwnEntryHeard,
    ProposalFailed,
    QueueNamed,
    SayPositions,
    Unreadable,
)
from penstock.cluster.membership.store_requests import Done, Outcome
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import Change
from penstock.metadata.store_asking import STORE_ERRORS, failure
from penstock.replication.cluster_interface import Proposal
from penstock.runtime.cluster.peers.cluster_driver import ClusterDriver
from penstock.runtime.cluster.peers.peer_links import PeerLinks
from penstock.runtime.cluster.peers.registration import Registration

logger = logging.getLogger(__name__)


class LayoutFollower:
    """Connects the mirror, the driver, the links and the registration of one node."""

    def __init__(
        self,
        name: str,
        mirror: MetadataMirror,
        driver: ClusterDriver,
        links: PeerLinks,
        registration: Registration,
        now_ms: Callable[[], int],
    ) -> None:
        self._mirror = mirror
        self._driver = driver
        self._links = links
        self._registration = registration
        self._now_ms = now_ms
        self._layout = NodeLayout(name, now_ms())
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """From now on; the mirror may have been filled already."""
        cache = self._mirror.cache
        self._driver.propose = self._propose
        for prefix in FOLLOWED:
            cache.listen(prefix, self._changed)
            for entry in cache.list(prefix):
                self._changed(Change(*entry))
        cache.settled_listeners.append(self._settled)
        self._settled(cache.settled)
        self._tick()

    def _changed(self, change: Change) -> None:
        self._perform(self._layout.changed(change.key, change.value, change.version, self._now_ms()))
        self._wait()

    def _settled(self, version: int) -> None:
        self._perform(self._layout.settled(version))

    def _tick(self) -> None:
        if not self._closed:
            self._perform(self._layout.tick(self._now_ms()))
            self._wait()

    def _wait(self) -> None:
        """Until the next tick is due; it comes after all changes that arrive together."""
        if self._timer is not None:
            self._timer.cancel()
        seconds = max(self._layout.next_ms() - self._now_ms(), 0) / 1000
        self._timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _perform(self, effects: Iterable[Effect]) -> None:
        driver, replication = self._driver, self._driver.replication
        for effect in effects:
            match effect:
                case ApplyNodes(nodes):
                    self._links.know({name: entry.peers for name, entry in nodes.items()})
                    driver.tell(partial(replication.apply_nodes, nodes))
                case ApplyEntry(entry, version):
                    driver.tell(partial(replication.apply_layout, [(entry, version)]))
                case EntryGone(partition, unreadable):
                    driver.tell(partial(replication.partition_gone, partition, unreadable=unreadable))
                case QueueNamed(name, queue_id):
                    driver.tell(partial(replication.queue_named, name, queue_id))
                case OwnEntryHeard(value, version):
                    self._registration.heard(value, version)
                case SayPositions(asked):
                    self._registration.say_positions(
                        replication.positions(asked) if driver.failure is None else {}
                    )
                case ProposalFailed(partition):
                    driver.tell(partial(replication.proposal_failed, partition))
                case Unreadable(sentence, fields):
                    logger.error("%(sentence)s", {"sentence": sentence, **fields})

    # -- proposals -------------------------------------------------------------------------------------------

    def _propose(self, proposal: Proposal) -> None:
        task = asyncio.get_running_loop().create_task(self._put(proposal))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _put(self, proposal: Proposal) -> None:
        partition = proposal.entry.partition
        outcome: Outcome
        try:
            outcome = Done(
                await self._mirror.put(partition_key(partition), encode(proposal.entry), proposal.version)
            )
        except STORE_ERRORS as error:
            outcome = failure(error)
        self._perform(self._layout.proposed(partition, outcome))

    async def close(self) -> None:
        """Stops following; requests in progress may still be carried out."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
