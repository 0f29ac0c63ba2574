"""The etcd of a local cluster: nobody without a certificate of the cluster's reads or writes there, not over any of its ports."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.cluster.local_plan import ROLES, ClusterPlan, plan_cluster
from penstock.metadata.store.etcd import open_etcd_store
from penstock.runtime.local_cluster.cluster import LocalCluster
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from penstock.runtime.local_cluster.ports import ports_of


def make(path: Path) -> LocalCluster:
    directory = ClusterDirectory(path)
    directory.make()
    plan = plan_cluster(nodes=1, front_ends=1, base_port=0, ports=ports_of(0))
    directory.save(ClusterState(plan=plan))
    return LocalCluster(directory)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    made = make(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.bring_down()


def put(key: str, value: str) -> bytes:
    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    return json.dumps({"key": encoded(key), "value": encoded(value)}).encode()


ROOT = put(
    "penstock/users/mallory",
    '{"name":"mallory","account":"000000000000","user_id":"x","root":true,"created_ms":1}',
)
OF_A_PAGE = {"Content-Type": "text/plain", "Origin": "https://evil.example"}


def asked(port: int, path: str, body: bytes, context: ssl.SSLContext | None) -> int | None:
    """The status of an answer; None: there is none, the connection was refused."""
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        if context is not None
        else http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    )
    try:
        connection.request("POST", path, body, OF_A_PAGE)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def trusting(plan: ClusterPlan, *, certificate: bool) -> ssl.SSLContext:
    directory = Path(plan.etcd_certificates or "")
    context = ssl.create_default_context(cafile=str(directory / "ca.pem"))
    if certificate:
        context.load_cert_chain(directory / "etcd-client.pem", directory / "etcd-client.key")
    return context


def test_neither_a_web_page_nor_a_program_of_the_machine_writes_users(cluster: LocalCluster) -> None:
    cluster.bring_up()
    plan = cluster.plan
    (etcd,) = plan.of_role("etcd")
    assert plan.tls is None  # the other processes speak no TLS here
    for port in etcd.ports.values():
        assert asked(port, "/v3/kv/put", ROOT, None) in (
            None,
            400,
        )  # "client sent an HTTP request to an HTTPS server"
        assert asked(port, "/v3/kv/put", ROOT, trusting(plan, certificate=False)) is None
        assert asked(port, "/raft/stream/message", ROOT, trusting(plan, certificate=False)) is None
    assert (
        asked(
            etcd.ports["client"],
            "/v3/kv/range",
            put("penstock/users/mallory", ""),
            trusting(plan, certificate=True),
        )
        == 200
    )

    async def users() -> list[str]:
        store = await open_etcd_store(plan.etcd_url)
        try:
            return [entry.key for entry in (await store.list("users/")).entries]
        finally:
            await store.close()

    assert asyncio.run(users()) == []
    for file in Path(plan.etcd_certificates or "").iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_cluster_of_an_earlier_version_comes_along_with_its_data(cluster: LocalCluster) -> None:
    for role in ROLES:  # as it was started before: its etcd takes everybody
        cluster.start(*(one.name for one in cluster.plan.of_role(role)))
    before = cluster.plan
    (etcd,) = before.of_role("etcd")
    assert before.etcd_url == f"etcd://{etcd.address('client')}"
    assert asked(etcd.ports["client"], "/v3/kv/range", put("penstock/x", ""), None) == 200
    with penstock.connect_blocking(before.native_url) as client:
        client.create_queue("orders").send(b"from before")
    cluster.bring_up()  # while it runs nothing is changed
    assert cluster.plan == before
    cluster.bring_down()
    cluster.bring_up()
    assert cluster.plan.etcd_url.startswith(f"etcds://{etcd.address('client')}?")
    assert asked(etcd.ports["client"], "/v3/kv/range", put("penstock/x", ""), None) in (None, 400)
    with penstock.connect_blocking(cluster.plan.native_url) as client:
        (message,) = client.queue("orders").receive(wait=30)
        assert message.body == b"from before"
    cluster.bring_down()
    cluster.bring_up()  # and it stays so
    with penstock.connect_blocking(cluster.plan.native_url) as client:
        assert client.describe_queue("orders").name == "orders"
