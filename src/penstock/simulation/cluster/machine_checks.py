"""What is looked at on each machine of a cluster while it runs: its starts, and its turns."""

from __future__ import annotations

from collections.abc import Callable

from penstock.backend.node import Node
from penstock.backend.replication.replicated_node import ReplicatedNode
from penstock.simulation import opened_ledger
from penstock.simulation.cluster import replicas_checked
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.replicas_checked import ReplicaCheck
from penstock.simulation.cluster.witness import Witness
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.opened_ledger import OpenedLedger


def watch(
    machine: ClusterMachine,
    witness: Witness,
    is_harmed: Callable[[], bool],
    violated: Callable[[str, str], None],
) -> None:
    """Checks a machine from now on; on one that is harmed the disk does not hold what was written to it."""
    ledger, observer = OpenedLedger(machine.identity.seed), machine.observer
    replica = ReplicaCheck(machine.name, witness, machine.identity.seed)

    def appended(record: AppendedRecord) -> None:
        observer(record)
        ledger.appended(record)
        replica.appended(record)

    def booted(node: Node) -> None:
        for sentence in ledger.opened(node, machine.disk, is_harmed=is_harmed()):
            violated(opened_ledger.NAME, f"{machine.name}: {sentence}")
        for sentence in replica.opened(node, machine.disk, is_harmed=is_harmed()):
            violated(opened_ledger.NAME, sentence)

    def turned(node: ReplicatedNode) -> None:
        for sentence in replica.turned(node, machine.disk, is_harmed=is_harmed()):
            violated(replicas_checked.NAME, sentence)

    machine.observer = appended
    machine.opening.append(ledger.opening)
    machine.booted.append(booted)
    machine.turned.append(turned)
