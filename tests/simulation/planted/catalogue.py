"""All bugs that can be planted, by name: in a single node, and in a cluster. `penstock simulate --bug` takes them from here."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.simulation.patching import Patch
from tests.simulation.planted.bug import ClusterBug, PlantedBug
from tests.simulation.planted.cluster.losses import LOSS_BUGS
from tests.simulation.planted.cluster.membership import MEMBERSHIP_BUGS
from tests.simulation.planted.cluster.pauses import PAUSE_BUGS
from tests.simulation.planted.cluster.promises import PROMISE_BUGS
from tests.simulation.planted.cluster.replication import REPLICATION_BUGS
from tests.simulation.planted.cluster.sequences import SEQUENCE_BUGS
from tests.simulation.planted.cluster.storage import STORAGE_BUGS
from tests.simulation.planted.cluster.usage import USAGE_BUGS
from tests.simulation.planted.fault_bugs import FAULT_BUGS
from tests.simulation.planted.node_bugs import NODE_BUGS

BUGS: dict[str, PlantedBug] = {**NODE_BUGS, **FAULT_BUGS}
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


def sentences(*, cluster: bool) -> dict[str, str]:
    """Each bug in a sentence, for people."""
    if cluster:
        return {
            name: f"{bug.sentence} (caught by {' or '.join(bug.checkers)})"
            for name, bug in CLUSTER_BUGS.items()
        }
    return {name: f"{bug.sentence} (caught by {bug.checker})" for name, bug in BUGS.items()}


def patches_of(name: str, *, cluster: bool) -> Sequence[Patch]:
    """The patches of one run with this bug. Worker processes import it by its name."""
    bug = CLUSTER_BUGS[name] if cluster else BUGS[name]
    return bug.patches()
