"""The configuration file and command line of each process of a local cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from penstock.cluster.local.local_plan import ETCD_CLIENT, ClusterPlan, Planned, toml
from penstock.runtime.local_cluster.certificates import ThrowAwayAuthority
from penstock.runtime.local_cluster.directory import ClusterDirectory
from penstock.runtime.local_cluster.etcd_process import EtcdMember, MemberTls

CONFIGURATION = "penstock.toml"
REPLICAS = 3
"""The default for queues created without a number of replicas; fewer if there are fewer nodes."""
_PENSTOCK = (sys.executable, "-m", "penstock.cli.main")
_COMMANDS = {"node": ("node", "run"), "frontend": ("frontend",), "metadata": ("metadata",)}

Tables = Mapping[str, Mapping[str, str | int]]


def etcd_member(
    planned: Planned, plan: ClusterPlan, directory: ClusterDirectory, before: tuple[str, ...] = ()
) -> EtcdMember:
    """A member of a local cluster's own etcd, of which there is one unless the plan has more."""
    members = plan.of_role("etcd")
    named = {one.name: f"etcd-{number}" for number, one in enumerate(members, 1)}
    tls = _etcd_tls(plan)
    scheme = "http" if tls is None else "https"
    return EtcdMember(
        name=named[planned.name],
        directory=directory.place(planned.name) / named[planned.name],
        client_port=planned.ports["client"],
        peer_port=planned.ports["peer"],
        peers=",".join(f"{named[one.name]}={scheme}://{one.address('peer')}" for one in members),
        host=planned.host,
        client_tls=tls,
        peer_tls=tls,
        before=before,
    )


def _etcd_tls(plan: ClusterPlan) -> MemberTls | None:
    """None only for an etcd that an earlier version has started and that still runs."""
    certificates = plan.etcd_certificates or plan.tls
    if certificates is None:
        return None
    authority = ThrowAwayAuthority(Path(certificates))
    authority.files(ETCD_CLIENT)  # for requests of monitoring
    own = authority.files("etcd")
    return MemberTls(certificate=own.certificate, key=own.key, client_ca=own.authority)


def configuration(planned: Planned, plan: ClusterPlan, directory: ClusterDirectory) -> str:
    """The file of a process, as on a separate machine."""
    tables = {"node": _node, "frontend": _front_end, "metadata": _metadata}[planned.role]
    return toml(tables(planned, plan, directory))


def command(planned: Planned, directory: ClusterDirectory) -> list[str]:
    """The command line of a process that is Penstock's own."""
    file = directory.place(planned.name) / CONFIGURATION
    ready = directory.ready_file(planned.name)
    return [*_PENSTOCK, *_COMMANDS[planned.role], "--config", str(file), "--ready-file", str(ready)]


def environment() -> dict[str, str]:
    """Ours, without what it may say to a single server: each process has its own file."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}


def _shared(planned: Planned, plan: ClusterPlan, directory: ClusterDirectory) -> dict[str, str]:
    shared = {"name": planned.name, "metadata": plan.etcd_url, "secret_file": str(directory.secret_file)}
    if plan.tls is not None:
        own = ThrowAwayAuthority(Path(plan.tls)).files(planned.name)
        shared["tls_certificate"] = str(own.certificate)
        shared["tls_key"] = str(own.key)
        shared["tls_ca"] = str(own.authority)
    return shared


def _node(planned: Planned, plan: ClusterPlan, directory: ClusterDirectory) -> Tables:
    # A cluster that was planned before nodes had ports for readers continues without.
    reader = {"node": {"reader_listen": planned.address("reader")}} if "reader" in planned.ports else {}
    return {
        "cluster": {
            **_shared(planned, plan, directory),
            "zone": planned.zone,
            "peers_listen": planned.address("peers"),
        },
        "native": {"listen": planned.address("native")},
        **reader,
        "monitoring": {"listen": planned.address("monitoring")},
        "storage": {"directory": str(_data(planned, directory))},
    }


def _front_end(planned: Planned, plan: ClusterPlan, directory: ClusterDirectory) -> Tables:
    # A cluster that was planned before front ends had metrics continues without.
    shows = "monitoring" in planned.ports
    shared = _shared(planned, plan, directory)
    shown: dict[str, str | int] = {
        name: shared[name] for name in ("tls_certificate", "tls_key") if name in shared
    }
    return {
        "cluster": {**shared, "metadata": _metadata_url(plan)},
        "native": {**shown, "trusted_proxies": plan.balancer.host},
        "frontend": {
            "native_listen": planned.address("native"),
            "monitoring_listen": planned.address("monitoring") if shows else "off",
            "replicas": min(REPLICAS, max(1, len(plan.of_role("node")))),
        },
        "sqs": {
            "listen": planned.address("sqs"),
            "public_url": plan.sqs_url,
            "trusted_proxies": plan.balancer.host,
        },
        "storage": {"directory": str(_data(planned, directory))},
        # All front ends of a cluster read the same users' secrets.
        "metadata": {"key_file": str(directory.master_key_file)},
    }


def _metadata(planned: Planned, plan: ClusterPlan, directory: ClusterDirectory) -> Tables:
    return {
        "cluster": _shared(planned, plan, directory),
        "metadata": {"listen": planned.address("listen")},
        "storage": {"directory": str(_data(planned, directory))},
    }


def _metadata_url(plan: ClusterPlan) -> str:
    """Front ends ask metadata servers where there are any, else etcd."""
    servers = plan.of_role("metadata")
    return f"metadata://{','.join(one.address('listen') for one in servers)}" if servers else plan.etcd_url


def _data(planned: Planned, directory: ClusterDirectory) -> Path:
    return directory.place(planned.name) / "data"
