"""A whole cluster as a section's server: brought up for it, ended and cleared away afterwards."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import penstock
from benchmarks.processes import BenchError
from benchmarks.stage import Server, Stage
from penstock.cluster.layout.entries import PARTITIONS, PartitionEntry, decode_partition
from penstock.cluster.local.local_plan import Role, plan_cluster
from penstock.metadata.remote.settings import read_secret
from penstock.metadata.seals.seals import layout_sealers
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.metadata.store.sealed import sealed
from penstock.model.errors import PenstockError
from penstock.runtime.local_cluster.balancer import BalancerMissingError
from penstock.runtime.local_cluster.cluster import LocalCluster, StartFailedError
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from penstock.runtime.local_cluster.etcd_process import EtcdFailedError, EtcdMissingError
from penstock.runtime.local_cluster.ports import ports_of
from penstock.runtime.local_cluster.running import cpu_seconds, resident_bytes

NODES = 3
Result = TypeVar("Result")


class Processes:
    """All processes of some roles as one."""

    def __init__(self, cluster: LocalCluster, *roles: Role) -> None:
        self._cluster = cluster
        self._roles = roles

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        return sum(self.each_cpu_seconds().values())

    def each_cpu_seconds(self) -> dict[str, float]:
        """The same by name."""
        return {name: cpu_seconds(one) for name, one in self._cluster.of_roles(*self._roles).items()}

    def resident_bytes(self) -> int:
        """Memory that is really there."""
        return sum(resident_bytes(one) for one in self._cluster.of_roles(*self._roles).values())


class ClusterServer(Server):
    """A running cluster; what a server costs is what its nodes cost."""

    def __init__(self, cluster: LocalCluster, url: str, client: penstock.BlockingClient) -> None:
        self.nodes = Processes(cluster, "node")
        super().__init__(self.nodes, url, client)
        self.cluster = cluster
        self.front_ends = Processes(cluster, "frontend")

    def ask_store(self, work: Callable[[MetadataStore], Awaitable[Result]]) -> Result:
        """Runs `work` on the cluster's metadata."""
        secret = read_secret(self.cluster.directory.secret_file)
        return asyncio.run(_ask_store(self.cluster.plan.etcd_url, secret, work))

    def partition_of(self, queue: str) -> PartitionEntry:
        """The only partition of a queue."""
        found = [entry for entry in self.ask_store(read_partitions).values() if entry.queue == queue]
        if len(found) != 1:
            raise BenchError(f"{queue} has {len(found)} partitions where it should have one")
        return found[0]


async def read_partitions(store: MetadataStore) -> dict[int, PartitionEntry]:
    """All partitions of the cluster, each by the version of its entry."""
    listing = await store.list(PARTITIONS)
    return {entry.version: decode_partition(entry.value) for entry in listing.entries}


async def _ask_store(url: str, secret: bytes, work: Callable[[MetadataStore], Awaitable[Result]]) -> Result:
    store = sealed(await open_etcd_store(url), layout_sealers(secret))
    try:
        return await work(store)
    finally:
        await store.close()


@contextmanager
def running_cluster(stage: Stage) -> Iterator[ClusterServer]:
    """Three nodes in three zones and one front end, which native clients reach without a balancer in between."""
    home = stage.directory / "cluster"
    directory = ClusterDirectory(home)
    directory.make()
    directory.save(ClusterState(plan=plan_cluster(nodes=NODES, front_ends=1, base_port=0, ports=ports_of(0))))
    cluster = LocalCluster(directory, lambda name, what: stage.progress(f"cluster: {name} {what}"))
    try:
        cluster.bring_up()
        (front_end,) = cluster.plan.of_role("frontend")
        url = f"penstock://{front_end.address('native')}"
        with penstock.connect_blocking(url) as client:
            yield ClusterServer(cluster, url, client)
    except (StartFailedError, EtcdMissingError, EtcdFailedError, BalancerMissingError) as error:
        raise BenchError(str(error)) from None
    except (PenstockError, StoreUnavailableError) as error:
        dead = cluster.dead()
        said = f"; {', '.join(dead)} died" if dead else ""
        raise BenchError(f"{error}{said}") from error
    finally:
        cluster.bring_down()
        shutil.rmtree(home, ignore_errors=True)
