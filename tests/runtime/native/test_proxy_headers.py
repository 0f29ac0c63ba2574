"""Native connections through a balancer: who the client is counts, and is believed of those only who are trusted."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from penstock.model.errors import ErrorCode
from penstock.runtime.embedded import running_server
from penstock.runtime.local_cluster.certificates import ThrowAwayAuthority
from penstock.wire.credentials import Prove, client_proof
from penstock.wire.frames import encode_frame
from penstock.wire.messages import (
    Challenge,
    DescribeQueue,
    Done,
    Failed,
    Hello,
    Ping,
    QueueDescription,
    Welcome,
    encode_message,
)
from penstock.wire.proxy_protocol import SIGNATURE
from tests.runtime.harness import RawClient, async_test, small_config
from tests.runtime.http.harness import on_both_loops
from tests.runtime.native.test_users import ORDERS, Someone, UserServer

NONCE = b"n" * 32
HELLO = b"".join(encode_frame(1, encode_message(Hello([1], "me"))))


def header(address: str) -> bytes:
    """Version 2, as HAProxy sends it."""
    source = ip_address(address)
    family, target = (b"\x11", bytes(4)) if source.version == 4 else (b"\x21", bytes(16))
    said = source.packed + target + b"\x12\x34\x24\x6e"
    return SIGNATURE + b"\x21" + family + len(said).to_bytes(2, "big") + said


def line(address: str) -> bytes:
    """Version 1."""
    return f"PROXY TCP4 {address} 10.0.0.1 1234 9326\r\n".encode()


@asynccontextmanager
async def balanced(tmp_path: Path, proxies: str = "127.0.0.1", **more: Any) -> AsyncIterator[UserServer]:
    async with running_server(tmp_path, small_config(native_trusted_proxies=(proxies,), **more)) as server:
        yield UserServer(server)


async def passed_on(there: UserServer, said: bytes) -> RawClient:
    """A connection that begins with what a balancer says."""
    client = await RawClient.connect(there.server.port, hello=False)
    client.writer.write(said)
    return client


async def tried(there: UserServer, said: bytes, key: str, secret: str) -> object:
    """What somebody is told who shows a key from an address."""
    client = await passed_on(there, said)
    challenge = await client.ask(Hello([1], "me", key, NONCE))
    assert isinstance(challenge, Challenge)
    proof = client_proof(secret, key, challenge.nonce, NONCE)
    answer = await client.ask(Prove(proof))  # type: ignore[arg-type]  # of the greeting, no request
    client.writer.close()
    return answer


@pytest.mark.parametrize("said", [header, line])
@async_test
async def test_who_fails_too_often_locks_out_nobody_else_behind_the_same_balancer(
    tmp_path: Path, said: Callable[[str], bytes]
) -> None:
    async with balanced(tmp_path, sqs_failed_signatures=1) as there:
        ada = await there.user("ada", root=True)
        for _ in range(15):
            told = await tried(there, said("203.0.113.9"), "AKIAGUESS", "guess")
        assert isinstance(told, Failed)
        assert told.code == ErrorCode.OVERLOADED
        assert isinstance(await tried(there, said("203.0.113.10"), *ada), Welcome)


@async_test
async def test_policies_and_the_record_are_about_the_client(tmp_path: Path) -> None:
    async with balanced(tmp_path) as there:
        root = await there.user("ada", root=True)
        sam = await there.user("sam")
        condition = {"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}
        statement = {
            "Effect": "Allow",
            "Action": "sqs:GetQueueAttributes",
            "Resource": ORDERS,
            "Condition": condition,
        }
        await there.users.put_policy(
            "sam", "p", json.dumps({"Version": "2012-10-17", "Statement": statement})
        )
        async with there.as_(root) as owner:  # without a header: the balancer's own, or somebody beside it
            await owner.create_queue("orders")
        assert isinstance(await described(there, header("203.0.113.9"), sam), QueueDescription)
        assert isinstance(await described(there, header("198.51.100.9"), sam), Failed)
        assert isinstance(await described(there, b"", sam), Failed)
        addresses = [event.address for event in there.events if event.user == "sam"]
        assert addresses == ["203.0.113.9", "198.51.100.9", "127.0.0.1"]


async def described(there: UserServer, said: bytes, someone: Someone) -> object:
    client = await passed_on(there, said)
    challenge = await client.ask(Hello([1], "me", someone.access_key, NONCE))
    assert isinstance(challenge, Challenge)
    proof = client_proof(someone.secret_key, someone.access_key, challenge.nonce, NONCE)
    assert isinstance(await client.ask(Prove(proof)), Welcome)  # type: ignore[arg-type]  # of the greeting
    answer = await client.ask(DescribeQueue("orders"))
    client.writer.close()
    return answer


@pytest.mark.parametrize("said", [header("127.0.0.1"), line("127.0.0.1")])
@on_both_loops
async def test_without_trust_a_header_is_refused(tmp_path: Path, said: bytes) -> None:
    for settings in ({}, {"native_trusted_proxies": ("192.0.2.1",)}):
        async with running_server(tmp_path, small_config(**settings)) as server:
            client = await RawClient.connect(server.port, hello=False)
            client.writer.write(said + HELLO)
            refused = await client.answer()
            assert isinstance(refused, Failed)
            assert "native.trusted_proxies" in refused.message
            assert await client.is_dropped()


@on_both_loops
async def test_without_users_only_clients_of_this_machine_are_served(tmp_path: Path) -> None:
    async with balanced(tmp_path) as there:
        for address, served in (("127.0.0.1", True), ("::1", True), ("203.0.113.9", False)):
            client = await passed_on(there, header(address))
            assert isinstance(await client.ask(Hello([1], "me")), Welcome if served else Failed)
        for said in (b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x21\x00\x00\x00"):  # it does not know who it is
            client = await passed_on(there, said)
            refused = await client.ask(Hello([1], "me"))
            assert isinstance(refused, Failed)
            assert refused.code == ErrorCode.UNAUTHENTICATED
        own = await passed_on(there, SIGNATURE + b"\x20\x00\x00\x00")
        assert isinstance(await own.ask(Hello([1], "me")), Welcome)


@on_both_loops
async def test_a_header_may_come_in_pieces_and_with_what_follows(tmp_path: Path) -> None:
    async with balanced(tmp_path) as there:
        client = await RawClient.connect(there.server.port, hello=False)
        for byte in header("127.0.0.9"):
            client.writer.write(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)
        assert isinstance(await client.ask(Hello([1], "me")), Welcome)
        client = await RawClient.connect(there.server.port, hello=False)
        client.writer.write(header("127.0.0.9") + HELLO)
        assert isinstance(await client.answer(), Welcome)
        assert await client.ask(Ping()) == Done()


@pytest.mark.parametrize(
    "said", [b"PROXY TCP4 nonsense\r\n", SIGNATURE + b"\x99\x00\x00\x00", SIGNATURE + b"\x21\x11\xff\xff"]
)
@async_test
async def test_a_header_that_is_none_ends_the_connection(
    tmp_path: Path, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with balanced(tmp_path) as there:
        client = await passed_on(there, said + HELLO)
        assert await client.is_dropped()
        assert "which connected to the native protocol: it" in caplog.text


@on_both_loops
async def test_the_header_comes_before_tls(tmp_path: Path) -> None:
    files = ThrowAwayAuthority(tmp_path / "authority").files("server")
    tls = {"native_tls_certificate": str(files.certificate), "native_tls_key": str(files.key)}
    async with balanced(tmp_path / "data", **tls) as there:
        for said, served in ((header("127.0.0.1"), True), (header("203.0.113.9"), False), (b"", True)):
            context = ssl.create_default_context(cafile=str(files.authority))
            reader, writer = await asyncio.open_connection("127.0.0.1", there.server.port)
            writer.write(said)
            await writer.drain()
            await writer.start_tls(context, server_hostname="localhost")
            client = RawClient(reader, writer)
            assert isinstance(await client.ask(Hello([1], "me")), Welcome if served else Failed)
            writer.close()
