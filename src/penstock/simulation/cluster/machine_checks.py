"""The checks of each machine of a cluster while it runs: its starts, and its turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.backend.node import whole_state
from penstock.backend.node.node import Node
from penstock.model.records import CATALOGUE
from penstock.replication.primary_secondary.node import peer_stream
from penstock.replication.primary_secondary.node.leader import sender
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation import opened_ledger
from penstock.simulation.cluster import replicas_checked
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.observer import Observer
from penstock.simulation.cluster.replicas_checked import ReplicaCheck
from penstock.simulation.history import History
from penstock.simulation.message_history import Span
from penstock.simulation.observed_store import AppendedRecord, ObservedStore
from penstock.simulation.opened_ledger import OpenedLedger
from penstock.storage import replica_log
from penstock.storage.options import StorageOptions

STREAM_BOUNDS = "I13"


def watch(
    machine: ClusterMachine,
    observer: Observer,
    history: History,
    is_harmed: Callable[[], bool],
    violated: Callable[[str, str], None],
) -> None:
    """Checks a machine from now on; on one that is harmed the disk does not hold what was written to it."""
    ledger, on_append = OpenedLedger(machine.identity.seed), machine.on_append
    replica = ReplicaCheck(machine.name, observer, machine.identity.seed)
    bound = _most_bytes(machine.options)

    def appended(record: AppendedRecord) -> None:
        on_append(record)
        ledger.appended(record)
        replica.appended(record)

    def booted(node: Node) -> None:
        assert isinstance(node, ReplicatedNode)
        assert machine.store is not None
        led = node.replication.state.led
        machine.store.is_foreign = lambda partition: partition != CATALOGUE and partition not in led
        for sentence in ledger.opened(node, machine.disk, is_harmed=is_harmed()):
            violated(opened_ledger.NAME, f"{machine.name}: {sentence}")
        for sentence in replica.opened(node, machine.disk, is_harmed=is_harmed()):
            violated(opened_ledger.NAME, sentence)

    def going_down(store: ObservedStore) -> None:
        # A restart makes what is kept for deletes on a full disk less, as `overload` knows.
        history.downtimes.append(Span(machine.time.now_ms, machine.time.now_ms))
        if machine.replicated is not None:
            observer.ended(machine.name, machine.replicated)

    def turned(node: ReplicatedNode) -> None:
        _note_watermarks(node, history)
        if not is_harmed():
            for sentence in _beyond(machine.name, node, bound):
                violated(STREAM_BOUNDS, sentence)
        for sentence in replica.turned(node, machine.disk, is_harmed=is_harmed()):
            violated(replicas_checked.NAME, sentence)

    machine.on_append = appended
    machine.opening.append(ledger.opening)
    machine.booted.append(booted)
    machine.going_down.append(going_down)
    machine.turned.append(turned)


def _note_watermarks(node: ReplicatedNode, history: History) -> None:
    """Notes the watermark that a client would get now: few clients ask."""
    state, partitions = node.replication.state, node._parts.catalogue.partitions
    for partition_id, led in state.led.items():
        partition = partitions[partition_id]
        if not partition.settings.sorted:
            continue
        known = state.layout.get(partition_id)
        if known is None or not state.serves(partition_id):
            continue
        life = history.lives.get(known.entry.queue_id)
        if life is not None and led.primary.committed >= partition.index:
            life.watermarks_us.add(partition.watermark_us)


def _most_bytes(options: StorageOptions) -> int:
    """A window, the piece that filled it, and one that was being read meanwhile; each of both may end beyond its size."""
    filling = max(sender.APPEND_BYTES, replica_log.IMAGE_PART_BYTES)
    read = max(replica_log.READ_BYTES, whole_state._WALK_BYTES)
    beyond = options.entry_bytes_max + peer_stream.FRAME_OVERHEAD_BYTES
    return peer_stream.WINDOW_BYTES + filling + read + 2 * beyond


def _beyond(name: str, node: ReplicatedNode, bound: int) -> Iterator[str]:
    """Streams with more under way than the bound."""
    for other, stream in node.replication.state.streams.items():
        under_way = stream.sent_bytes - stream.confirmed_bytes
        if under_way > bound:
            yield f"{name} has {under_way} bytes under way to {other}, the window is {peer_stream.WINDOW_BYTES}"
