"""A node is given a replica again after a start at which its snapshot said that it has none: what follows must survive the next start."""

from __future__ import annotations

from collections import deque

import msgspec

from penstock.model.batch import encode_parts
from penstock.storage.store import Store
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_many_journeys import everything

MOVED, OTHER = 1, 9


class _HeldJobs(deque[object]):
    """Jobs of a helper thread that is busy."""

    busy = True

    def __bool__(self) -> bool:
        return not self.busy and len(self) > 0


def test_a_replica_that_comes_back_after_a_start_has_its_log_at_the_next_one() -> None:
    cluster = Cluster()
    cluster.create("moved", MOVED)
    cluster.create("other", OTHER, ("c",))
    cluster.settle(500)
    _drop_during_a_checkpoint(cluster)
    _kill(cluster)
    cluster.put(
        msgspec.structs.replace(cluster.entry(MOVED), replicas=["a", "b", "c"], joined={"c": cluster.version})
    )
    cluster.settle(2_000)
    bodies = [b"one", b"two", b"three"]
    for body in bodies:
        assert isinstance(cluster.ask(messages.Send(MOVED), encode_parts([body])), messages.SendResult)
    assert "c" in cluster.entry(MOVED).in_sync
    had = _index(cluster)
    cluster.machines["a"].crash()
    cluster.machines["b"].crash()
    cluster.settle(3_000)
    _kill(cluster)
    assert _index(cluster) >= had
    cluster.machines["a"].start()
    cluster.settle(3_000)
    assert everything(cluster, MOVED) == bodies


def _drop_during_a_checkpoint(cluster: Cluster) -> None:
    """The snapshot that `c` writes meanwhile says that the partition is gone."""
    machine, jobs = cluster.machines["c"], _HeldJobs(cluster.machines["c"].jobs)
    machine.jobs = jobs  # type: ignore[assignment]  # of the same rows
    store = _store(cluster)
    for _ in range(40):
        if store._checkpointer._under_way is not None:
            break
        cluster.ask(messages.Send(OTHER), encode_parts([b"x" * 30_000]), partition=OTHER)
    assert store._checkpointer._under_way is not None
    entry = cluster.entry(MOVED)
    cluster.put(msgspec.structs.replace(entry, replicas=["a", "b"], in_sync=["a", "b"], leaving=["c"]))
    cluster.settle(1_000)
    assert cluster.entry(MOVED).leaving == []
    jobs.busy = False
    cluster.settle(1_000)
    assert store.replica_log is not None
    assert store.replica_log.had(MOVED)


def _store(cluster: Cluster) -> Store:
    node = cluster.machines["c"].node
    assert node is not None
    return node.replication.state.parts.store


def _index(cluster: Cluster) -> int:
    node = cluster.machines["c"].node
    assert node is not None
    return node.replication.state.parts.catalogue.partitions[MOVED].index


def _kill(cluster: Cluster) -> None:
    cluster.machines["c"].crash(power=False)
    cluster.machines["c"].start()
    cluster.settle(500)
