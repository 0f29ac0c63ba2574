"""Whether an etcd is guarded, found out at real ones: open to all, with passwords, with TLS, and with certificates."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import ABSENT
from penstock.runtime.cluster.store_guard import warn_of_unguarded_store, why_unguarded
from penstock.runtime.local_cluster.certificates import CertificateFiles, ThrowAwayAuthority
from penstock.runtime.local_cluster.etcd_cluster import plan_members
from penstock.runtime.local_cluster.etcd_process import EtcdProcess, MemberTls
from tests.etcd_servers import EtcdServers
from tests.metadata.test_etcd_security import turn_on_authentication
from tests.ports import pairs_of_ports
from tests.runtime.harness import async_test


@asynccontextmanager
async def etcd_with_tls(tmp_path: Path, *, certificates: bool) -> AsyncIterator[tuple[str, CertificateFiles]]:
    """The address of an etcd that speaks TLS, and files for who asks it; with or without asking for theirs."""
    files = ThrowAwayAuthority(tmp_path / "tls").files("etcd")
    tls = MemberTls(files.certificate, files.key, files.authority if certificates else None)
    (planned,) = plan_members(tmp_path / "etcd", pairs_of_ports(1))
    member = EtcdProcess(replace(planned, client_tls=tls))
    member.start()
    try:
        await member.ready()
        yield planned.address, files
    finally:
        member.stop()


@async_test
async def test_an_etcd_that_is_open_to_all_is_named_in_one_line(
    etcd: EtcdServers, caplog: pytest.LogCaptureFixture
) -> None:
    await warn_of_unguarded_store(etcd.url(), None)
    (line,) = caplog.messages
    assert etcd.members[0].member.address in line
    assert "without TLS" in line
    assert "requires neither a certificate (--client-cert-auth) nor a password" in line
    assert "docs/guide/cluster.md#your-etcd" in line


@async_test
async def test_a_password_is_something_and_not_everything(etcd_of_its_own: EtcdServers) -> None:
    await turn_on_authentication(etcd_of_its_own)
    address = etcd_of_its_own.members[0].member.address
    why = await why_unguarded(f"etcd://al:al-password@{address}/ours", None)
    assert why is not None
    assert "without TLS" in why
    assert "accepts every client" not in why


@async_test
async def test_tls_alone_lets_everybody_in(tmp_path: Path) -> None:
    async with etcd_with_tls(tmp_path, certificates=False) as (address, files):
        why = await why_unguarded(f"etcds://{address}?ca={files.authority}", None)
        assert why is not None
        assert "accepts every client" in why
        assert "without TLS" not in why


@async_test
async def test_of_an_etcd_that_asks_for_certificates_nothing_is_said(tmp_path: Path) -> None:
    async with etcd_with_tls(tmp_path, certificates=True) as (address, files):
        url = f"etcds://{address}?ca={files.authority}&certificate={files.certificate}&key={files.key}"
        await (await open_etcd_store(url)).close()
        assert await why_unguarded(url, None) is None


@async_test
async def test_where_nobody_is_there_or_it_is_no_etcd_nothing_is_said() -> None:
    assert await why_unguarded("etcds://127.0.0.1:1", None) is None
    assert await why_unguarded("sqlite:file", None) is None
    assert await why_unguarded("metadata://127.0.0.1:9327", None) is None
    said = await why_unguarded("metadata://10.0.0.31:9327,10.0.0.32:9327", None)
    assert said is not None
    assert "metadata servers do not use TLS" in said


@async_test
async def test_a_key_that_is_no_text_stops_nobody(etcd: EtcdServers) -> None:
    """Whoever can write to etcd could otherwise keep every process from starting."""
    url = etcd.url("strange-keys")
    await etcd.ask("/v3/kv/put", {"key": base64.b64encode(b"strange-keys/users/\xff").decode(), "value": ""})
    store = await open_etcd_store(url)
    await store.put("a", b"1")
    listing = await store.list("")
    assert [entry.key for entry in listing.entries] == ["a", "users/\ufffd"]
    watch = store.watch("", ABSENT)
    assert (await anext(watch)).key == "users/\ufffd"
    await watch.aclose()
    await store.close()


def test_check_config_connects_if_it_is_asked_to(etcd: EtcdServers, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("3 espressi and a glass of water\n")
    (tmp_path / "secret").chmod(0o600)
    file = tmp_path / "node.toml"
    file.write_text(
        f'[cluster]\nname = "node-1"\nmetadata = "{etcd.url()}"\nsecret_file = "{tmp_path / "secret"}"\n'
    )
    runner = CliRunner(env={"COLUMNS": "500"})
    assert runner.invoke(app, ["check-config", str(file), "--role", "node"]).exit_code == 0
    looked = runner.invoke(app, ["check-config", str(file), "--role", "node", "--connect"])
    assert looked.exit_code == 1
    assert "cluster.metadata: the cluster's etcd" in looked.stderr
    assert "is used without TLS" in looked.stderr
