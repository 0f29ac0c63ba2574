"""The etcd of a local cluster: nobody without a certificate of the cluster's reads or writes there, not over any of its ports."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock.cluster.local.local_plan import ROLES, ClusterPlan, plan_cluster
from penstock.metadata.seals.master_key import load_or_make_master_key
from penstock.metadata.seals.seals import Sealer
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.users.users import KEYS, USERS, User, new_access_key
from penstock.runtime.local_cluster.cluster import LocalCluster, StartFailedError
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from tests.ports import ports_of
from tests.process.programs import soon
from tests.runtime.test_sealing_from_before import as_before


def make(path: Path) -> LocalCluster:
    directory = ClusterDirectory(path)
    directory.make()
    plan = plan_cluster(nodes=1, front_ends=1, base_port=0, ports=ports_of)
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
        http.client.HTTPSConnection("127.0.0.1", port, timeout=100, context=context)
        if context is not None
        else http.client.HTTPConnection("127.0.0.1", port, timeout=100)
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


async def unseal_everything(url: str) -> None:
    """As a version without seals would have written it."""
    store = await open_etcd_store(url)
    for entry in (await store.list("")).entries:
        await store.put(entry.key, Sealer.bare(entry.value))
    await store.close()


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
    for role in ("balancer", "frontend", "node"):
        cluster.stop(*(one.name for one in cluster.plan.of_role(role)))
    asyncio.run(unseal_everything(before.etcd_url))
    cluster.bring_down()
    cluster.bring_up()
    assert cluster.state.sealed
    assert cluster.plan.etcd_url.startswith(f"etcds://{etcd.address('client')}?")
    assert asked(etcd.ports["client"], "/v3/kv/range", put("penstock/x", ""), None) in (None, 400)
    with penstock.connect_blocking(cluster.plan.native_url) as client:
        (message,) = client.queue("orders").receive(wait=30)
        assert message.body == b"from before"
    cluster.bring_down()
    cluster.bring_up()  # and it stays so
    with penstock.connect_blocking(cluster.plan.native_url) as client:
        assert client.describe_queue("orders").name == "orders"


def old_user(directory: ClusterDirectory) -> tuple[dict[str, bytes], str, str]:
    """What a version without seals has in etcd about a root; its key and secret."""
    master = load_or_make_master_key(directory.master_key_file, os.urandom)
    user = User(name="ada", account="000000000000", user_id="AIDAADA", root=True, created_ms=1)
    key, secret = new_access_key(user, master, os.urandom, 1)
    return {USERS + "ada": as_before(user), KEYS + key.key_id: as_before(key)}, key.key_id, secret


async def put_all(url: str, entries: dict[str, bytes]) -> None:
    store = await open_etcd_store(url)
    for key, value in entries.items():
        await store.put(key, value)
    await store.close()


def test_users_of_an_earlier_version_need_somebody_who_knows_them(cluster: LocalCluster) -> None:
    cluster.start("etcd")
    entries, key, secret = old_user(cluster.directory)
    asyncio.run(put_all(cluster.plan.etcd_url, entries))
    cluster.bring_down()
    with pytest.raises(
        StartFailedError, match=rf"the roots ada \({key}\) and the users \(none\).*--seal-users"
    ):
        cluster.bring_up()
    cluster.bring_down()
    cluster.bring_up(seal_users=True)
    url = cluster.plan.native_url
    with penstock.connect_blocking(url, access_key=key, secret_key=secret) as client:
        client.create_queue("orders")
    cluster.bring_down()
    cluster.bring_up()  # once is enough
    with penstock.connect_blocking(url, access_key=key, secret_key=secret) as client:
        assert client.describe_queue("orders").name == "orders"


def test_who_writes_to_the_store_without_the_secret_gets_at_no_message(cluster: LocalCluster) -> None:
    """Even with the certificate that etcd asks for: queues, nodes and users are sealed."""
    cluster.bring_up()
    url = cluster.plan.etcd_url
    with penstock.connect_blocking(cluster.plan.native_url) as client:
        client.create_queue("vip").send(b"secret")
        client.create_queue("mal")

    async def redirect() -> None:
        store = await open_etcd_store(url)
        vip, mal = [await store.get(f"cluster/queues/{name}") for name in ("vip", "mal")]
        assert vip is not None
        assert mal is not None
        stolen = msgspec.json.decode(vip.value)
        stolen["name"] = "mal"
        await store.put(mal.key, msgspec.json.encode(stolen))
        (node,) = (await store.list("cluster/nodes/")).entries
        elsewhere = msgspec.json.decode(node.value)
        elsewhere["native"] = "127.0.0.1:1"
        await store.put(node.key, msgspec.json.encode(elsewhere))
        await store.close()

    asyncio.run(redirect())
    log = cluster.directory.log("frontend-1")
    soon(lambda: "ignored the entry cluster/nodes/node-1 in the metadata store" in log.read_text(), 60)
    with penstock.connect_blocking(cluster.plan.native_url, timeout=5) as client:
        with pytest.raises(penstock.PenstockError, match="has no valid seal"):
            client.queue("mal").receive()
        (message,) = client.queue("vip").receive()
        assert message.body == b"secret"
