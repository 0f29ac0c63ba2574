"""The native protocol over TLS: messages large and many, refusals that say what to do, certificates that are renewed."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.client.connection.address import Address as Place
from penstock.client.connection.address import parse_address
from penstock.client.connection.failure import Untrusted
from penstock.client.connection.trust import authorities_of, chosen_authority
from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import KIBIBYTE, MEBIBYTE
from penstock.runtime.embedded import EmbeddedServer, running_server
from penstock.runtime.local_cluster.certificates import CertificateFiles, ThrowAwayAuthority
from penstock.runtime.processes.listening import StartError
from penstock.runtime.processes.remote_front_end import open_front_end
from tests.runtime.harness import async_test, small_config, until
from tests.runtime.http.harness import on_both_loops
from tests.runtime.native.test_users import ORDERS, UserServer, policy
from tests.runtime.relay import relay

ANY = Address("127.0.0.1", 0)
CONDITION = {"Bool": {"aws:SecureTransport": "true"}}


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    """A certificate for this machine, of an authority that nobody else knows."""
    return ThrowAwayAuthority(tmp_path / "authority").files("server")


@asynccontextmanager
async def secure(directory: Path, files: CertificateFiles, **changes: Any) -> AsyncIterator[EmbeddedServer]:
    config = small_config(
        sqs_listen=None,
        native_tls_certificate=str(files.certificate),
        native_tls_key=str(files.key),
        **changes,
    )
    async with running_server(directory / "data", config) as server:
        yield server


async def refusal(url: str, **options: Any) -> PenstockError:
    """What a client hears; it must hear it at once, and not after having tried on."""
    with pytest.raises(PenstockError) as raised:
        await penstock.connect(url, timeout=600, **options)
    return raised.value


@on_both_loops
async def test_large_messages_and_many_at_once_arrive_as_they_were_sent(
    tmp_path: Path, files: CertificateFiles
) -> None:
    """The server may hold little that a client has not read, so that reading and writing stop and go on."""
    sizes = [1, 100, 70 * KIBIBYTE, MEBIBYTE] * 12
    bodies = [number.to_bytes(2, "big") + os.urandom(size) for number, size in enumerate(sizes)]
    async with (
        secure(tmp_path, files, write_buffer_bytes=64 * KIBIBYTE) as server,
        penstock.connect(server.url, ca=files.authority) as client,
    ):
        assert server.url.startswith("penstocks://127.0.0.1:")
        queue = await client.create_queue("orders", max_message_bytes=2 * MEBIBYTE)
        await asyncio.gather(*[queue.send(body) for body in bodies])
        found: list[bytes] = []
        async for message in queue.consume():
            found.append(bytes(message.body))
            await message.delete()
            if len(found) == len(bodies):
                break
        assert sorted(found) == sorted(bodies)
        assert not len(await queue.receive(1))


@async_test
async def test_a_client_that_does_not_read_is_waited_for_and_goes_on(
    tmp_path: Path, files: CertificateFiles
) -> None:
    async with (
        secure(tmp_path, files, write_buffer_bytes=64 * KIBIBYTE) as server,
        penstock.connect(server.url, ca=files.authority) as client,
    ):
        queue = await client.create_queue("orders")
        await asyncio.gather(*[queue.send(os.urandom(200_000)) for _ in range(100)])
        link: Any = client._link
        link._connection._transport.pause_reading()
        asked = [asyncio.ensure_future(queue.receive(1)) for _ in range(100)]
        (connection,) = server.broker._server.connections.values()
        await until(lambda: connection.has_unread_answers)
        link._connection._transport.resume_reading()
        assert sum([len(await one) for one in asked]) == 100


@on_both_loops
async def test_the_server_is_found_again_when_it_is_back(tmp_path: Path, files: CertificateFiles) -> None:
    async with secure(tmp_path, files) as server:
        client = await penstock.connect(server.url, ca=files.authority)
        queue = await client.create_queue("orders")
        await queue.send(b"before")
        port = server.port
    later = asyncio.ensure_future(queue.send(b"meanwhile"))
    async with secure(tmp_path, files, listen=Address("127.0.0.1", port)):
        await later
        assert (await queue.describe()).statistics.ready == 2
        await client.close()


@on_both_loops
async def test_a_certificate_of_another_authority_is_not_taken(
    tmp_path: Path, files: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_CA", raising=False)
    other = ThrowAwayAuthority(tmp_path / "other").files("server")
    async with secure(tmp_path, files) as server:
        for refused in (await refusal(server.url, ca=other.authority), await refusal(server.url)):
            assert isinstance(refused, Untrusted)
            assert refused.code is ErrorCode.UNAUTHENTICATED
            assert f"the certificate of {server.broker.address} is not trusted" in refused.message
            assert "name its file: ?ca=FILE in the url, ca=, or PENSTOCK_CA" in refused.message
        monkeypatch.setenv("PENSTOCK_CA", str(files.authority))
        await (await penstock.connect(server.url)).close()


@on_both_loops
async def test_a_certificate_of_somebody_else_is_not_taken(tmp_path: Path, files: CertificateFiles) -> None:
    async with secure(tmp_path, files, listen=Address("127.0.0.2", 0)) as server:
        refused = await refusal(server.url, ca=files.authority)
        assert isinstance(refused, Untrusted)
        assert "certificate is not valid for '127.0.0.2'" in refused.message
        assert "Connect to a name in the certificate" in refused.message


@on_both_loops
async def test_a_plain_client_is_told_to_speak_tls(
    tmp_path: Path, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    async with secure(tmp_path, files) as server:
        refused = await refusal(server.url.replace("penstocks", "penstock"))
        assert refused.code is ErrorCode.BAD_REQUEST
        assert "this server uses TLS: connect with penstocks://" in refused.message
        assert "it does not use TLS, and this process does" in caplog.text
        await (await penstock.connect(server.url, ca=files.authority)).close()


@on_both_loops
async def test_a_client_with_tls_is_told_that_the_server_has_none(
    tmp_path: Path, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_server(tmp_path / "data", small_config(sqs_listen=None)) as server:
        refused = await refusal(server.url.replace("penstock", "penstocks"), ca=files.authority)
        assert refused.code is ErrorCode.BAD_REQUEST
        assert f"the program at {server.broker.address} does not use TLS" in refused.message
        assert "it uses TLS, and native.tls_certificate is not set" in caplog.text
        await (await penstock.connect(server.url)).close()


@async_test
async def test_what_a_server_refuses_reaches_its_client_over_tls(
    tmp_path: Path, files: CertificateFiles
) -> None:
    async with (
        secure(tmp_path, files, max_connections=1) as server,
        penstock.connect(server.url, ca=files.authority),
    ):
        with pytest.raises(PenstockError, match="this server takes 1 connections"):
            await penstock.connect(server.url, ca=files.authority).connect(60, once=True)


@async_test
async def test_users_show_their_keys_and_policies_know_of_tls(
    tmp_path: Path, files: CertificateFiles
) -> None:
    async with secure(tmp_path, files) as server:
        serving_users = UserServer(server)
        root = await serving_users.user("root", root=True)
        async with serving_users.as_(root, ca=files.authority) as client:
            await client.create_queue("orders")
        careful = await serving_users.user("careful", "sqs:*")
        denied = policy("Deny", ["sqs:SendMessage"], ORDERS, Condition=CONDITION)
        await serving_users.heard("users/careful", serving_users.users.put_policy("careful", "tls", denied))
        async with serving_users.as_(careful, ca=files.authority) as client:
            with pytest.raises(PenstockError, match="access-denied"):
                await client.queue("orders").send(b"over TLS")
        refused = await refusal(server.url, ca=files.authority)
        assert refused.code is ErrorCode.UNAUTHENTICATED
        assert not isinstance(refused, Untrusted)


@async_test
async def test_a_renewed_certificate_is_shown_to_those_who_come_later(
    tmp_path: Path, files: CertificateFiles
) -> None:
    async with secure(tmp_path, files) as server:
        tls = server.broker.native_tls
        assert tls is not None
        first = await shown(server.port, files)
        ThrowAwayAuthority(tmp_path / "authority").renew("server")
        assert await shown(server.port, files) == first
        tls.reload()
        assert await shown(server.port, files) != first


async def shown(port: int, files: CertificateFiles) -> bytes:
    context = ssl.create_default_context(cafile=str(files.authority))
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: ssl.SSLObject = writer.get_extra_info("ssl_object")
    certificate = found.getpeercert(binary_form=True)
    writer.close()
    assert certificate is not None
    return certificate


def showing(files: CertificateFiles) -> ssl.SSLContext:
    """What somebody listens with who has such a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


@on_both_loops
async def test_who_passes_a_greeting_on_is_not_let_in(tmp_path: Path, files: CertificateFiles) -> None:
    """A client may take a key to a server that is somebody else's: who has that must not become the client here."""
    others = ThrowAwayAuthority(tmp_path / "other").files("server")
    trusting = ssl.create_default_context(cafile=str(files.authority))
    async with secure(tmp_path, files) as server:
        root = await UserServer(server).user("ada", root=True)
        key, secret = root.access_key, root.secret_key
        place = f"127.0.0.1:{server.port}"
        async with (
            relay(place, towards_client=showing(others), towards_server=trusting) as elsewhere,
            relay(place, towards_server=trusting) as plain,
        ):
            for url, authority in (
                (f"penstocks://{elsewhere}", others.authority),
                (f"penstock://{plain}", None),
            ):
                error = await refusal(url, ca=authority, access_key=key, secret_key=secret)
                assert error.code is ErrorCode.UNAUTHENTICATED
                assert "an intermediary forwards the connection" in error.message
        tls = server.broker.native_tls
        assert tls is not None
        for _ in range(2):
            # Who passes bytes on as they are learns nothing, and may: balancers and tunnels do.
            async with relay(place) as tunnel:
                client = await penstock.connect(
                    f"penstocks://{tunnel}", ca=files.authority, access_key=key, secret_key=secret
                )
                await client.close()
            ThrowAwayAuthority(tmp_path / "authority").renew("server")
            tls.reload()


@async_test
async def test_a_balancer_may_end_tls_in_front_of_a_server_without(
    tmp_path: Path, files: CertificateFiles
) -> None:
    async with running_server(tmp_path / "data", small_config()) as server:
        root = await UserServer(server).user("ada", root=True)
        async with (
            relay(f"127.0.0.1:{server.port}", towards_client=showing(files)) as balancer,
            penstock.connect(
                f"penstocks://{balancer}",
                ca=files.authority,
                access_key=root.access_key,
                secret_key=root.secret_key,
            ) as client,
        ):
            await client.create_queue("orders")


@async_test
async def test_a_front_end_asks_its_server_over_tls(
    tmp_path: Path, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with secure(tmp_path, files) as server:

        def config(authority: str | None, data: str = "data") -> FrontendConfig:
            return FrontendConfig(
                backend=server.broker.address,
                backend_ca=authority,
                sqs_listen=ANY,
                data_directory=str(tmp_path / data),
            )

        front = await open_front_end(config(str(files.authority)))
        assert front.connected
        await front.close()
        plain = await open_front_end(config(None))
        assert not plain.connected
        await plain.close()
        assert "this server uses TLS: connect with penstocks://" in caplog.text
        with pytest.raises(StartError, match=r"authority file .*nowhere does not exist"):
            await open_front_end(config(str(tmp_path / "nowhere")))


@async_test
async def test_a_front_end_proves_itself_over_tls_and_through_nobody_else(
    tmp_path: Path, files: CertificateFiles
) -> None:
    others = ThrowAwayAuthority(tmp_path / "other").files("server")
    trusting = ssl.create_default_context(cafile=str(files.authority))
    async with secure(tmp_path, files) as server:
        await UserServer(server).user("ada", root=True)

        async def connects(place: Address, authority: Path) -> bool:
            config = FrontendConfig(
                backend=place,
                backend_ca=str(authority),
                sqs_listen=ANY,
                data_directory=str(tmp_path / "data"),
            )
            front = await open_front_end(config)
            try:
                return front.connected
            finally:
                await front.close()

        assert await connects(server.broker.address, files.authority)
        async with relay(
            str(server.broker.address), towards_client=showing(others), towards_server=trusting
        ) as elsewhere:
            assert not await connects(Address.parse(elsewhere, default_port=0), others.authority)


@async_test
async def test_a_server_does_not_start_with_files_that_it_cannot_use(
    tmp_path: Path, files: CertificateFiles
) -> None:
    with pytest.raises(StartError, match=r"the certificate file .*none\.pem does not exist"):
        async with secure(tmp_path, files._replace(certificate=tmp_path / "none.pem")):
            pass
    other = ThrowAwayAuthority(tmp_path / "other").files("server")
    with pytest.raises(StartError, match="does not belong to the certificate"):
        async with secure(tmp_path, files._replace(key=other.key)):
            pass


def test_urls_say_whether_there_is_tls_and_whom_to_trust() -> None:
    assert parse_address("penstocks://host") == Place("host", 9326, secure=True)
    assert parse_address("penstocks://host:1?ca=/a%20b/ca.pem") == Place("host", 1, True, "/a b/ca.pem")
    assert str(parse_address("penstocks://key:secret@host:1?ca=ca.pem")) == "host:1"
    for url, why in {
        "penstock://host?ca=ca.pem": "ca needs TLS: begin with penstocks://",
        "penstocks://host?verify=no": "only ca=FILE is allowed",
        "penstocks://host?ca=": "names no file",
        "https://host": "it must start with penstock://, or over TLS with penstocks://",
    }.items():
        with pytest.raises(PenstockError, match=why):
            parse_address(url)


def test_an_authority_is_a_file_or_what_is_in_one(tmp_path: Path, files: CertificateFiles) -> None:
    content = files.authority.read_text()
    assert chosen_authority(files.authority, "") == content
    assert chosen_authority(content, "another.pem") == content
    assert chosen_authority(None, str(files.authority), {"PENSTOCK_CA": "another.pem"}) == content
    assert chosen_authority(None, "", {"PENSTOCK_CA": str(files.authority)}) == content
    assert chosen_authority(None, "", {}) is None
    with pytest.raises(PenstockError, match=r"authority file .*nowhere\.pem cannot be read: No such file"):
        chosen_authority(tmp_path / "nowhere.pem", "")
    with pytest.raises(PenstockError, match="holds no certificates in PEM form"):
        chosen_authority(files.key, "")
    with pytest.raises(PenstockError, match="the url does not use it: begin it with penstocks://"):
        penstock.connect("penstock://host", ca=files.authority)
    secure_place, plain_place = Place("a", 1, True, str(files.authority)), Place("b", 2)
    assert authorities_of([secure_place, plain_place], None) == content
    assert authorities_of([plain_place], files.authority) is None
