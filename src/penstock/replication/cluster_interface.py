"""The interface between a replication model and the process of a cluster's node.

The process receives the layout, messages of other nodes and the state of the node's lease. It passes them to the model and
carries out what the model requests. It does not know which model it has: `runtime/processes/node.py` chooses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, Position
from penstock.model.batch import Buffer
from penstock.wire.frames import Frame


class Proposal(msgspec.Struct, frozen=True):
    """A change that a node requests: put `entry` if the version is still this one."""

    version: int
    entry: PartitionEntry


class LifecycleReport(NamedTuple):
    """Rows of one partition to be sent to the lifecycle log."""

    partition: int
    epoch: int
    """0: the queue is deleted, no node leads it any more."""
    through: int
    """The number of the last row."""
    batch: bytes
    """One message: an Arrow stream."""


class LayoutListener(Protocol):
    """Receives the layout and the state of the node's lease."""

    @property
    def started_ms(self) -> int:
        """When this life of the node began, by its entry."""

    def apply_nodes(self, nodes: Mapping[str, NodeEntry], now_ms: int) -> None:
        """The nodes that live, by the store."""

    def apply_layout(self, changes: Iterable[tuple[PartitionEntry, int]], now_ms: int) -> None:
        """Entries as they are in the store now, with their versions."""

    def partition_gone(self, partition: int, now_ms: int, *, unreadable: bool = False) -> None:
        """An entry is no longer in the store, or not readable."""

    def queue_named(self, name: str, queue_id: int | None, now_ms: int) -> None:
        """The queue that clients find under a name is this one; None: there is none."""

    def new_life(self, started_ms: int, now_ms: int) -> None:
        """The node's lease was lost and created again."""

    def lease_renewed(self, until_ms: int, now_ms: int) -> None:
        """Up to then, by this node's clock, no other node replaces it."""


class LayoutWishes(Protocol):
    """The changes of the layout that a model requests."""

    def take_proposals(self, now_ms: int) -> list[Proposal]:
        """Changes of the layout that the node requests, each on condition of a version.

        The outcome arrives as a new entry through `apply_layout`; if it is unknown, through `proposal_failed`.
        """

    def proposal_failed(self, partition: int, now_ms: int) -> None:
        """The store did not answer."""

    def positions(self, asked: Iterable[int]) -> dict[int, Position]:
        """How far the logs of these partitions go, and of those that the node should lead and cannot."""


class LifecycleSource(Protocol):
    """The source of rows for the lifecycle log."""

    def take_lifecycle_reports(self, now_ms: int) -> list[LifecycleReport]:
        """Rows to send; `lifecycle_reported` must be called with the outcome of each."""

    def lifecycle_reported(self, report: LifecycleReport, now_ms: int, *, stored: bool) -> None:
        """The log has the rows of a report, or may not have them."""


class Peers(Protocol):
    """Messages from and to other nodes, for a model of several nodes. Streams are ordered; a lost stream loses everything on
    it.
    """

    def peer_connected(self, node: str, now_ms: int) -> None:
        """There is a stream to another node; one that was there before is gone."""

    def peer_disconnected(self, node: str, now_ms: int) -> None:
        """The stream to another node is gone."""

    def peer_frame(self, node: str, frame: Frame, now_ms: int) -> None:
        """A frame from another node; raises `PenstockError` if it violates the protocol."""

    def take_peer_output(self) -> list[tuple[str, list[Buffer]]]:
        """The bytes to write to other nodes now."""


class ClusterModel(LayoutListener, LayoutWishes, LifecycleSource, Peers, Protocol):
    """Everything that the process around a node asks of its model."""
