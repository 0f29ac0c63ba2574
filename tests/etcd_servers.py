"""A real etcd for the tests: one member and three members, each started once in a session, when first asked for.

On loopback, with temporary data. Tests on the same etcd keep apart by namespace.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.metadata.store.etcd_client import EtcdClient
from penstock.metadata.store.etcd_messages import StatusAnswer
from penstock.metadata.store.etcd_settings import parse_etcd_url
from penstock.runtime.local_cluster.etcd_cluster import EtcdCluster, plan_members
from penstock.runtime.local_cluster.etcd_process import EtcdProcess, find_etcd
from tests.ports import pairs_of_ports

_namespaces = itertools.count(1)


class EtcdServers:
    """An etcd, and what tests do to it."""

    def __init__(self, cluster: EtcdCluster) -> None:
        self.cluster = cluster

    @property
    def members(self) -> list[EtcdProcess]:
        return self.cluster.members

    def url(self, namespace: str | None = None, first: EtcdProcess | None = None, options: str = "") -> str:
        """With a namespace that nobody has used yet unless one is named, and this member first."""
        members = sorted(self.members, key=lambda one: one is not first)
        addresses = ",".join(one.member.address for one in members)
        return f"etcd://{addresses}/{namespace or f'test-{next(_namespaces)}'}{options and '?' + options}"

    async def ask(
        self, path: str, request: dict[str, Any], member: EtcdProcess | None = None
    ) -> dict[str, Any]:
        """What the store has no need to ask."""
        client = EtcdClient(parse_etcd_url(f"etcd://{(member or self.members[0]).member.address}"))
        try:
            answer: dict[str, Any] = await client.ask(path, request, dict, again=True)
            return answer
        finally:
            client.close()

    async def leader(self) -> EtcdProcess:
        """The member that leads."""
        for member in self.members:
            client = EtcdClient(parse_etcd_url(f"etcd://{member.member.address}"))
            try:
                raw = await client.ask("/v3/maintenance/status", {}, dict, again=True)
                status = await client.ask("/v3/maintenance/status", {}, StatusAnswer, again=True)
            finally:
                client.close()
            if int(raw["header"]["member_id"]) == status.leader:
                return member
        raise AssertionError("no member says that it leads")

    async def heal(self) -> None:
        """Every member runs again, and has a leader."""
        for member in self.members:
            member.signal(signal.SIGCONT)
        self.cluster.start()
        await self.cluster.ready()


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServers]:
    """One member, whose shortest lease is a second."""
    yield from _run(tmp_path_factory.mktemp("etcd"), 1, heartbeat_ms=20, election_ms=100)


@pytest.fixture(scope="session")
def _three_members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServers]:
    yield from _run(tmp_path_factory.mktemp("etcd-trio"), 3, heartbeat_ms=50, election_ms=500)


@pytest.fixture
def etcd_trio(_three_members: EtcdServers) -> Iterator[EtcdServers]:
    """Three members, all of which run again after the test whatever it did to them."""
    try:
        yield _three_members
    finally:
        asyncio.run(_three_members.heal())


@pytest.fixture
def etcd_of_its_own(tmp_path: Path) -> Iterator[EtcdServers]:
    """One member for one test that does what no other should see."""
    yield from _run(tmp_path / "etcd", 1, heartbeat_ms=20, election_ms=100)


def _run(directory: Path, count: int, heartbeat_ms: int, election_ms: int) -> Iterator[EtcdServers]:
    # Also when nobody can end it any more, because the tests were killed, it goes with them.
    with_us = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
    members = plan_members(
        directory,
        pairs_of_ports(count),  # which it has again after it was killed
        heartbeat_ms=heartbeat_ms,
        election_ms=election_ms,
        before=with_us,
    )
    program = find_etcd()
    cluster = EtcdCluster([EtcdProcess(member, program) for member in members])
    try:
        cluster.start()
        asyncio.run(cluster.ready())
        yield EtcdServers(cluster)
    finally:
        for member in cluster.members:
            member.signal(signal.SIGKILL)  # nobody needs the data, so that there is nothing to wait for
