"""The cluster that a run is about: an etcd of three members, metadata servers, nodes, front ends and a balancer.

Where the machine allows it every process is on a machine of its own, whose cable can be cut, and nodes
and members of etcd have disks that lose what was not synced.
"""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from penstock.cluster.local.local_plan import ROLES, ClusterPlan, Planned, Role, plan_cluster
from penstock.runtime.local_cluster import running
from penstock.runtime.local_cluster.balancer import reload_balancer
from penstock.runtime.local_cluster.cluster import LocalCluster
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from tests.chaos.disks import Disk
from tests.chaos.faults import Fault, Kind
from tests.chaos.network import Network
from tests.ports import ports_of

Report = Callable[[str], None]
ETCD_MEMBERS = 3
START_SECONDS = 300.0
"""However busy the machine is."""
PARTNERS: dict[Role, Role] = {"node": "node", "frontend": "node", "metadata": "etcd", "etcd": "etcd"}


@dataclass
class Stage:
    """The cluster, and what can be done to its processes."""

    cluster: LocalCluster
    network: Network | None = None
    disks: dict[str, Disk] = field(default_factory=dict)

    @property
    def plan(self) -> ClusterPlan:
        """All processes there are."""
        return self.cluster.plan

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of faults that can be done here."""
        cut: tuple[Kind, ...] = ("cut",) if self.network is not None else ()
        power: tuple[Kind, ...] = ("power",) if self.disks else ()
        return ("kill", "pause", *cut, *power)

    def strike(self, fault: Fault, names: Sequence[str]) -> None:
        """Does it to processes."""
        for name in names:
            match fault.kind:
                case "kill":
                    self.cluster.kill(name)
                case "pause":
                    running.tell(self.cluster.state.running[name], signal.SIGSTOP)
                case "cut":
                    assert self.network is not None
                    self.network.cut(name, fault.shape, self.partners(name))
                case "power":
                    self.disks[name].lose_power()
                    self.cluster.kill(name)

    def heal(self, fault: Fault, names: Sequence[str]) -> None:
        """Undoes it."""
        match fault.kind:
            case "pause":
                for name in names:
                    running.tell(self.cluster.state.running[name], signal.SIGCONT)
            case "cut":
                assert self.network is not None
                self.network.mend()
            case "kill":
                self.cluster.start(*names)
            case "power":
                for name in names:
                    self.disks[name].restore_power()
                self.cluster.start(*names)

    def partners(self, name: str) -> list[str]:
        """Those that a process cannot do its work without."""
        role = PARTNERS[self.cluster.planned(name).role]
        return [one.name for one in self.plan.of_role(role) if one.name != name]

    def etcd_leader(self) -> str | None:
        """The member of etcd that leads, if one of them says that it does."""
        for one in self.plan.of_role("etcd"):
            connection = http.client.HTTPConnection(one.address("client"), timeout=2)
            try:
                connection.request("POST", "/v3/maintenance/status", "{}")
                said = json.loads(connection.getresponse().read())
                if said.get("leader") and said["leader"] == said["header"]["member_id"]:
                    return one.name
            except (OSError, ValueError, http.client.HTTPException):
                continue
            finally:
                connection.close()
        return None

    def reload_balancer(self) -> None:
        """New workers take over from the old ones, as with a new configuration."""
        assert reload_balancer(self.cluster.state.running[self.plan.balancer.name])


def new_stage(
    directory: Path,
    report: Report,
    *,
    nodes: int = 3,
    front_ends: int = 2,
    metadata: int = 2,
    networked: bool = False,
    disks: bool = False,
) -> Stage:
    """A cluster of its own; not started."""
    place = ClusterDirectory(directory)
    place.make()
    plan = _plan(nodes, front_ends, metadata)
    network = None
    if networked:
        network = Network([one.name for one in plan.processes])
        network.make()
        plan = _on_machines(plan, network)
    place.save(ClusterState(plan=plan))

    def before(planned: Planned) -> tuple[str, ...]:
        return network.before(planned.name) if network is not None else ()

    cluster = LocalCluster(place, lambda name, what: report(f"{name}: {what}"), before, START_SECONDS)
    stage = Stage(cluster, network)
    if disks:
        for number, one in enumerate(plan.of_role("etcd"), 1):
            stage.disks[one.name] = Disk(
                directory / "disks" / one.name, place.place(one.name) / f"etcd-{number}" / "data"
            )
        for one in plan.of_role("node"):
            stage.disks[one.name] = Disk(directory / "disks" / one.name, place.place(one.name) / "data")
        for disk in stage.disks.values():
            disk.make()
    return stage


def _plan(nodes: int, front_ends: int, metadata: int) -> ClusterPlan:
    members = [
        Planned(name=f"etcd-{number}", role="etcd", ports=ports_of("etcd", number))
        for number in range(1, ETCD_MEMBERS + 1)
    ]
    plan = plan_cluster(
        nodes=nodes, front_ends=front_ends, metadata=metadata, base_port=0, etcd_url="etcd://", ports=ports_of
    )
    return _with(plan, [*members, *plan.processes])


def _on_machines(plan: ClusterPlan, network: Network) -> ClusterPlan:
    hosts = {one.name: network.host(one.name) for one in plan.processes}
    return _with(plan, [msgspec.structs.replace(one, host=hosts[one.name]) for one in plan.processes])


def _with(plan: ClusterPlan, processes: list[Planned]) -> ClusterPlan:
    processes = sorted(processes, key=lambda one: ROLES.index(one.role))
    members = ",".join(one.address("client") for one in processes if one.role == "etcd")
    return msgspec.structs.replace(plan, processes=processes, etcd_url=f"etcd://{members}")
