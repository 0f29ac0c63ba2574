"""A client that has a secret wants the server to show that it knows it too; only one of its own machine may ask for nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import penstock
from penstock.config.address import Address
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.embedded import running_server
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.streams.framed import FramedConnection
from penstock.wire.credentials import Credentials
from tests.runtime.harness import async_test, small_config
from tests.runtime.native.test_users import serving_users


@async_test
async def test_a_server_of_this_machine_without_users_takes_any_key(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, small_config()) as server,
        penstock.connect(server.url, access_key="KEY", secret_key="a secret") as client,
    ):
        await client.create_queue("orders")


@async_test
async def test_a_server_elsewhere_that_asks_for_no_proof_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FramedConnection, "peer", "192.0.2.7")  # there is no other machine here
    async with serving_users(tmp_path) as there:
        with pytest.raises(PenstockError, match="without proving that it knows the secret") as caught:
            await penstock.connect(there.server.url, access_key="KEY", secret_key="a secret")
        assert caught.value.code is ErrorCode.UNAUTHENTICATED
        assert "a secret" not in str(caught.value)
        await (await penstock.connect(there.server.url)).close()  # who has no key has none to protect
        root = await there.user("ada", root=True)
        async with there.as_(root) as client:
            await client.create_queue("orders")


@async_test
async def test_a_server_that_has_shown_it_once_must_always_show_it(tmp_path: Path) -> None:
    for name in ("honest", "other"):
        (tmp_path / name).mkdir()
    async with serving_users(tmp_path / "honest") as there:
        port = there.server.port
        root = await there.user("ada", root=True)
        client = await there.as_(root)
        await client.create_queue("orders")
    async with running_server(tmp_path / "other", small_config(listen=Address("127.0.0.1", port))):
        with pytest.raises(PenstockError, match="without proving that it knows the secret"):
            await client.queue("orders").send(b"for the honest one")
        await client.close()


@async_test
async def test_a_back_end_that_has_shown_it_once_must_always_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()

    def failed(reason: str) -> None:
        if "without proving that it knows the secret" in reason:
            refused.set()

    for name in ("honest", "other"):
        (tmp_path / name).mkdir()
    async with serving_users(tmp_path / "honest") as there:
        port = there.server.port
        key, secret = await there.user("ada", root=True)
        link = TcpLink(
            Address("127.0.0.1", port), asyncio.get_running_loop(), credentials=Credentials(key, secret)
        )
        monkeypatch.setattr(link, "_failed_to_connect", failed)
        link.start()
        await link.found()
    async with running_server(tmp_path / "other", small_config(listen=Address("127.0.0.1", port))):
        await refused.wait()
        assert not link.connected
        await link.close()
