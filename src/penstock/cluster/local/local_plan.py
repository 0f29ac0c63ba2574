"""The plan of a cluster on one machine: its processes, their zones, ports and configuration.

Nothing is started here. The configuration file of each process is one that an operator would write for a separate machine,
so a local cluster is also an example.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal
from urllib.parse import urlencode

import msgspec

from penstock.cluster.local.haproxy import BalancedFrontEnd, BalancerPlan
from penstock.model.document import Document

Role = Literal["etcd", "metadata", "node", "frontend", "balancer"]
ROLES: tuple[Role, ...] = ("etcd", "metadata", "node", "frontend", "balancer")
"""In the order in which they are started; they are stopped the other way round."""

HOST = "127.0.0.1"
BASE_PORT = 9320
PORTS_OF_ROLE: dict[Role, tuple[str, ...]] = {
    "etcd": ("client", "peer"),
    "metadata": ("listen",),
    "node": ("native", "peers", "monitoring", "reader"),
    "frontend": ("sqs", "native", "monitoring"),
    "balancer": ("sqs", "page", "native"),
}
_OFFSETS: dict[Role, int] = {"etcd": 0, "balancer": 4, "frontend": 20, "metadata": 80, "node": 100}
"""With the usual base the balancer is where a single server would be: SQS on 9324, native on 9326."""
_ROOM: dict[Role, int] = {"etcd": 2, "balancer": 3, "frontend": 30, "metadata": 20, "node": 300}
MOST = {role: _ROOM[role] // len(PORTS_OF_ROLE[role]) for role in ROLES}

ETCD_CLIENT = "etcd-client"
"""The name of the certificate that is shown to a local cluster's own etcd."""

ZONE = re.compile(r"[A-Za-z0-9_.-]{1,63}")
"""As a node takes it; a node of a local cluster always has one."""

Ports = Callable[[Role, int], dict[str, int]]
"""The ports of a process: by its role and its number, which is 1 for the first."""


class PlanError(ValueError):
    """Such a cluster is impossible; the message gives the reason."""


class Planned(Document, frozen=True, kw_only=True):
    """A process of the cluster."""

    name: str
    role: Role
    ports: dict[str, int]
    zone: str = ""
    host: str = HOST

    def address(self, port: str) -> str:
        """HOST:PORT of one of its ports."""
        return f"{self.host}:{self.ports[port]}"


class ClusterPlan(Document, frozen=True, kw_only=True):
    """All processes, in the order in which they are started."""

    zones: int
    base_port: int
    etcd_url: str
    """Of our own etcd, or of the one that was there before."""
    processes: list[Planned]
    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    """The highest number that a process of a role ever had: a name is not given twice."""
    tls: str | None = None
    """The directory of the temporary certificates with which the processes use TLS; None: they use no TLS."""
    etcd_certificates: str | None = None
    """The directory of the certificates that the cluster's own etcd asks for and shows, where `tls` names none."""
    passes_clients_on: bool = False
    """Whether the balancer sends client addresses, which front ends of earlier versions do not understand. All processes have
    one version when the cluster is started.
    """

    def of_role(self, role: Role) -> list[Planned]:
        """The processes of one role."""
        return [one for one in self.processes if one.role == role]

    def find(self, name: str) -> Planned | None:
        """A process by its name."""
        return next((one for one in self.processes if one.name == name), None)

    @property
    def balancer(self) -> Planned:
        """The one in front."""
        (found,) = self.of_role("balancer")
        return found

    @property
    def sqs_url(self) -> str:
        """The URL for all SQS clients."""
        return f"http://{self.balancer.address('sqs')}"

    @property
    def native_url(self) -> str:
        """The URL for all native clients."""
        place = self.balancer.address("native")
        if self.tls is None:
            return f"penstock://{place}"
        return f"penstocks://{place}?{urlencode({'ca': f'{self.tls}/ca.pem'}, safe='/')}"

    @property
    def page_url(self) -> str:
        """The URL of the balancer's statistics page."""
        return f"http://{self.balancer.address('page')}/"


def ports_from(base: int) -> Ports:
    """Ports above a base, the same each time."""

    def ports(role: Role, number: int) -> dict[str, int]:
        names = PORTS_OF_ROLE[role]
        first = base + _OFFSETS[role] + (number - 1) * len(names)
        if number > MOST[role]:
            raise PlanError(f"there is room for {MOST[role]} processes of the role {role} on one machine")
        if first + len(names) > 65_536:
            raise PlanError(f"--base-port {base} leaves no room below 65536")
        return {name: first + offset for offset, name in enumerate(names)}

    return ports


def plan_cluster(
    *,
    nodes: int,
    front_ends: int,
    metadata: int = 0,
    zones: int = 3,
    base_port: int = BASE_PORT,
    etcd_url: str | None = None,
    ports: Ports | None = None,
    tls: str | None = None,
) -> ClusterPlan:
    """A new cluster; raises `PlanError`."""
    ports = ports or ports_from(base_port)
    for what, count, least in (
        ("--nodes", nodes, 1),
        ("--frontends", front_ends, 1),
        ("--metadata", metadata, 0),
        ("--zones", zones, 1),
    ):
        if count < least:
            raise PlanError(f"{what} {count} is too few; use {least} or more")
    own = [] if etcd_url is not None else [Planned(name="etcd", role="etcd", ports=ports("etcd", 1))]
    plan = ClusterPlan(
        zones=zones,
        base_port=base_port,
        etcd_url=etcd_url or own_etcd_url(own[0], tls),
        tls=tls,
        passes_clients_on=True,
        processes=[*own, Planned(name="balancer", role="balancer", ports=ports("balancer", 1))],
    )
    wanted: tuple[tuple[Role, int], ...] = (("metadata", metadata), ("node", nodes), ("frontend", front_ends))
    for role, count in wanted:
        for _ in range(count):
            plan, _ = with_another(plan, role, ports)
    return plan


def own_etcd_url(etcd: Planned, certificates: str | None) -> str:
    """The URL of a cluster's own etcd, and the certificates for it."""
    if certificates is None:
        return f"etcd://{etcd.address('client')}"
    files = {"ca": "ca.pem", "certificate": f"{ETCD_CLIENT}.pem", "key": f"{ETCD_CLIENT}.key"}
    options = urlencode({option: f"{certificates}/{file}" for option, file in files.items()}, safe="/")
    return f"etcds://{etcd.address('client')}?{options}"


def with_guarded_etcd(plan: ClusterPlan, certificates: str) -> ClusterPlan:
    """The plan with TLS and client certificates for its own etcd, if it has one without them.

    Otherwise every process of the machine, and every web page in a browser there, could write to its known port. Clusters
    of earlier versions are converted: their etcd continues with its data.
    """
    own = plan.of_role("etcd")
    if len(own) != 1 or own[0].host != HOST or plan.tls is not None or plan.etcd_certificates is not None:
        return plan
    url = own_etcd_url(own[0], certificates)
    return msgspec.structs.replace(plan, etcd_url=url, etcd_certificates=certificates)


def with_another(
    plan: ClusterPlan, role: Role, ports: Ports, zone: str | None = None
) -> tuple[ClusterPlan, Planned]:
    """The plan with one process more, and that process: a node goes to the zone that has fewest. Raises `PlanError`."""
    if zone is not None and not ZONE.fullmatch(zone):
        raise PlanError(
            f"{zone!r} is not a zone: use 1 to 63 letters, digits, - _ . (without --zone it is the one with fewest nodes)"
        )
    number = plan.numbers.get(role, 0) + 1
    if zone is None:
        zone = _emptiest_zone(plan) if role == "node" else ""
    added = Planned(name=f"{role}-{number}", role=role, ports=ports(role, number), zone=zone)
    processes = sorted([*plan.processes, added], key=lambda one: ROLES.index(one.role))
    return msgspec.structs.replace(plan, processes=processes, numbers={**plan.numbers, role: number}), added


def enlarged(plan: ClusterPlan, role: Role, count: int | None, ports: Ports) -> ClusterPlan:
    """The plan with so many processes of a role; None: as many as it has. Raises `PlanError` where it has more."""
    there = len(plan.of_role(role))
    if count is None:
        return plan
    if count < there:
        raise PlanError(
            f"this cluster has {there} processes of the role {role}, not {count}: start it as it is, and take away with "
            "`penstock cluster remove` what is too much"
        )
    for _ in range(count - there):
        plan, _ = with_another(plan, role, ports)
    return plan


def without(plan: ClusterPlan, name: str) -> ClusterPlan:
    """The plan without a process."""
    return msgspec.structs.replace(plan, processes=[one for one in plan.processes if one.name != name])


def balancer_plan(plan: ClusterPlan, max_connections: int = 10_000) -> BalancerPlan:
    """The plan for HAProxy."""
    own = plan.balancer
    return BalancerPlan(
        sqs_listen=own.address("sqs"),
        native_listen=own.address("native"),
        page_listen=own.address("page"),
        front_ends=[
            BalancedFrontEnd(name=one.name, sqs=one.address("sqs"), native=one.address("native"))
            for one in plan.of_role("frontend")
        ],
        max_connections=max_connections,
        passes_clients_on=plan.passes_clients_on,
    )


def toml(tables: Mapping[str, Mapping[str, str | int]]) -> str:
    """A configuration file. JSON's strings are TOML's."""
    return "\n".join(_toml_lines(tables)) + "\n"


def _toml_lines(tables: Mapping[str, Mapping[str, str | int]]) -> Iterator[str]:
    for number, (table, values) in enumerate(tables.items()):
        if number:
            yield ""
        yield f"[{table}]"
        for key, value in values.items():
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"


def _emptiest_zone(plan: ClusterPlan) -> str:
    zones = [f"zone-{number}" for number in range(1, plan.zones + 1)]
    used = [one.zone for one in plan.of_role("node")]
    return min(zones, key=used.count)
