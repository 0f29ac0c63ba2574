"""All bugs that can be planted in a cluster, by name."""

from __future__ import annotations

from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.planted_bugs import REPLICATION_BUGS
from penstock.simulation.cluster.planted_losses import LOSS_BUGS
from penstock.simulation.cluster.planted_membership import MEMBERSHIP_BUGS
from penstock.simulation.cluster.planted_pauses import PAUSE_BUGS
from penstock.simulation.cluster.planted_promises import PROMISE_BUGS
from penstock.simulation.cluster.planted_sequences import SEQUENCE_BUGS
from penstock.simulation.cluster.planted_storage import STORAGE_BUGS
from penstock.simulation.cluster.planted_usage import USAGE_BUGS

CLUSTER_BUGS: dict[str, ClusterBug] = {
    **REPLICATION_BUGS,
    **MEMBERSHIP_BUGS,
    **STORAGE_BUGS,
    **LOSS_BUGS,
    **USAGE_BUGS,
    **PAUSE_BUGS,
    **PROMISE_BUGS,
    **SEQUENCE_BUGS,
}
