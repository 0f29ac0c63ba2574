"""Certificates between the processes of a cluster: whose are taken, who is refused and told so, and how they are renewed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.config.address import Address
from penstock.runtime.cluster import streams as cluster_streams
from penstock.runtime.cluster.streams import dial, listen
from penstock.runtime.cluster.tls import HOST, ClusterTls
from penstock.runtime.http.tls import TlsError
from penstock.runtime.local_cluster.certificates import CertificateFiles, ThrowAwayAuthority
from penstock.runtime.processes.listening import bind
from penstock.wire.handshake import HandshakeError
from penstock.wire.strangers import STRANGERS_AT_ONCE
from tests.runtime.harness import async_test


class Said(asyncio.Protocol):
    """Says hello as a server, and hears what is said to it."""

    made = 0

    def __init__(self, greets: bool = False) -> None:
        self._greets = greets
        self.heard = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if self._greets:
            Said.made += 1
            assert hasattr(transport, "write")
            transport.write(b"hello")

    def data_received(self, data: bytes) -> None:
        self.heard += data
        assert self.transport is not None
        self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set_result(None)


@asynccontextmanager
async def listening(tls: ClusterTls) -> AsyncIterator[int]:
    """A port where everybody is greeted who is let in."""
    Said.made = 0
    listener = bind(Address("127.0.0.1", 0), "--listen")
    opened = await listen(lambda: Said(greets=True), listener, tls, "the test")
    try:
        yield listener.getsockname()[1]
    finally:
        opened.close()


async def heard_at(port: int, tls: ClusterTls | None) -> bytes:
    """What a server says to a client."""
    said = await dial(Said, "127.0.0.1", port, tls)
    await said.ended
    return said.heard


def files_in(place: Path, name: str = "node-1") -> CertificateFiles:
    return ThrowAwayAuthority(place).files(name)


@async_test
async def test_two_certificates_of_one_authority_are_enough(tmp_path: Path) -> None:
    async with listening(ClusterTls(*files_in(tmp_path, "one"))) as port:
        assert await heard_at(port, ClusterTls(*files_in(tmp_path, "two"))) == b"hello"


@async_test
async def test_who_has_a_certificate_of_another_authority_is_refused_and_the_log_says_who(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, strange = files_in(tmp_path / "own"), files_in(tmp_path / "strange")
    trusting = ClusterTls(strange.certificate, strange.key, strange.authority)
    # It takes the server for one of its own, so that it is the server who has to refuse.
    trusting.client.load_verify_locations(own.authority)
    async with listening(ClusterTls(*own)) as port:
        assert await heard_at(port, trusting) == b""
        await logged(
            caplog, "refused 127.0.0.1, which connected to the test: its certificate is not signed by"
        )
        assert Said.made == 0


@async_test
async def test_a_server_with_a_certificate_of_another_authority_is_not_believed(tmp_path: Path) -> None:
    async with listening(ClusterTls(*files_in(tmp_path / "strange"))) as port:
        with pytest.raises(HandshakeError, match="its certificate is not signed by the cluster's authority"):
            await heard_at(port, ClusterTls(*files_in(tmp_path / "own")))


@async_test
async def test_who_shows_no_certificate_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = files_in(tmp_path)
    nameless = ssl.create_default_context(cafile=str(files.authority))
    async with listening(ClusterTls(*files)) as port:
        _, said = await asyncio.get_running_loop().create_connection(Said, "127.0.0.1", port, ssl=nameless)
        await said.ended
        assert said.heard == b""
        await logged(caplog, "it has no certificate")
        assert Said.made == 0


@async_test
async def test_who_does_not_speak_tls_is_refused_before_anything_is_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(ClusterTls(*files_in(tmp_path))) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x20\0\0\0 a frame of the native protocol")
        await logged(caplog, "it does not use TLS")
        assert Said.made == 0
        writer.close()


@async_test
async def test_one_host_is_told_of_once_and_not_at_every_try(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(ClusterTls(*files_in(tmp_path))) as port:
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await reader.read()
            writer.close()
        assert len([line for line in caplog.messages if "refused" in line]) == 1


@async_test
async def test_a_plain_server_is_told_apart_from_one_that_is_away(tmp_path: Path) -> None:
    listener = bind(Address("127.0.0.1", 0), "--listen")
    opened = await listen(lambda: Said(greets=True), listener, None, "the test")
    with pytest.raises(HandshakeError, match="it does not use TLS"):
        await heard_at(listener.getsockname()[1], ClusterTls(*files_in(tmp_path)))
    opened.close()


@async_test
async def test_renewed_files_are_used_for_connections_to_come(tmp_path: Path) -> None:
    """The whole cluster changes to another authority: first it trusts both, then it shows certificates of the new one."""
    old, new = files_in(tmp_path / "old"), files_in(tmp_path / "new")
    place = tmp_path / "used"
    place.mkdir()
    files = CertificateFiles(place / "node.pem", place / "node.key", place / "ca.pem")
    for source, target in zip(old, files, strict=True):
        target.write_bytes(source.read_bytes())
    tls, later = ClusterTls(*files), ClusterTls(*new)
    async with listening(tls) as port:
        with pytest.raises(HandshakeError):
            await heard_at(port, later)
        files.authority.write_bytes(old.authority.read_bytes() + new.authority.read_bytes())
        for source, target in ((new.certificate, files.certificate), (new.key, files.key)):
            target.write_bytes(source.read_bytes())
        tls.reload()
        assert await heard_at(port, later) == b"hello"
        assert await heard_at(port, tls) == b"hello"


@async_test
async def test_what_cannot_be_loaded_leaves_what_is_in_use(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    tls = ClusterTls(*files)
    files.key.write_text("nothing")
    async with listening(tls) as port:
        with pytest.raises(TlsError, match="cannot be loaded"):
            tls.reload()
        assert await heard_at(port, tls) == b"hello"


def test_a_certificate_that_the_others_would_refuse_is_refused_at_once(tmp_path: Path) -> None:
    own, strange = files_in(tmp_path / "own"), files_in(tmp_path / "strange")
    with pytest.raises(TlsError, match=r"would be refused by the cluster's authority .*ca\.pem"):
        ClusterTls(own.certificate, own.key, strange.authority)
    with pytest.raises(TlsError, match="does not belong to the certificate"):
        ClusterTls(own.certificate, strange.key, own.authority)
    with pytest.raises(TlsError, match="does not exist"):
        ClusterTls(own.certificate, own.key, tmp_path / "nowhere.pem")
    with pytest.raises(TlsError, match="holds no certificates"):
        ClusterTls(own.certificate, own.key, own.key)


@async_test
async def test_who_connects_and_says_nothing_keeps_nobody_out(tmp_path: Path) -> None:
    tls = ClusterTls(*files_in(tmp_path))
    async with listening(tls) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * STRANGERS_AT_ONCE)]
        async with asyncio.timeout(
            cluster_streams.HANDSHAKE_SECONDS / 2
        ):  # before the silent ones are cut off anyway
            assert await heard_at(port, tls) == b"hello"
            reader, _ = silent[0]
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b"", "it has waited longest"
        for _, writer in silent:
            writer.close()


@async_test
async def test_a_listener_that_is_closed_lets_its_socket_go(tmp_path: Path) -> None:
    async with listening(ClusterTls(*files_in(tmp_path))) as port:
        pass
    for _ in range(100):
        with socket.socket() as again:
            if again.connect_ex(("127.0.0.1", port)) != 0:
                return
        await asyncio.sleep(0)
    raise AssertionError("it still listens")


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Returns when the log of the streams has a line with the text; the test's own time bounds it."""
    said = asyncio.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if text in record.getMessage():
                said.set()

    watch = Watch()
    cluster_streams.logger.addHandler(watch)
    try:
        if not any(text in line for line in caplog.messages):
            await said.wait()
    finally:
        cluster_streams.logger.removeHandler(watch)


# -- names -----------------------------------------------------------------------------------------------------


def named(place: Path, certificate: str, wanted: str) -> ClusterTls:
    """What a process has whose certificate is for one name, and which looks for another, or the same, in others'."""
    return ClusterTls(*files_in(place, certificate), wanted)


@async_test
async def test_all_who_have_the_name_of_the_cluster_are_taken(tmp_path: Path) -> None:
    tls = named(tmp_path, "queues.example.com", "Queues.example.com")
    async with listening(tls) as port:
        assert await heard_at(port, tls) == b"hello"


@async_test
async def test_who_comes_in_with_another_name_is_refused_before_anything_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = ClusterTls(*files_in(tmp_path, "other.example.com"))
    with caplog.at_level(logging.WARNING):
        async with listening(named(tmp_path, "queues.example.com", "queues.example.com")) as port:
            assert await heard_at(port, other) == b""
            await logged(
                caplog, "refused 127.0.0.1, which connected to the test: its certificate is for other."
            )
    assert "not for queues.example.com (cluster.tls_name)" in caplog.text
    assert Said.made == 0


@async_test
async def test_a_server_with_another_name_is_not_believed(tmp_path: Path) -> None:
    ours = named(tmp_path, "queues.example.com", "queues.example.com")
    async with listening(ClusterTls(*files_in(tmp_path, "other.example.com"))) as port:
        with pytest.raises(HandshakeError, match=r"another name.*queues\.example\.com"):
            await heard_at(port, ours)


@async_test
async def test_with_host_the_certificate_must_name_what_was_dialled(tmp_path: Path) -> None:
    tls = named(tmp_path, "node-1", HOST)
    async with listening(tls) as port:
        assert await heard_at(port, tls) == b"hello", "the certificates of the test name 127.0.0.1"
        with pytest.raises(HandshakeError, match=r"another name.*127\.1"):
            await dial(Said, "127.1", port, tls)  # the same address by another name


def test_a_process_whose_own_certificate_lacks_the_name_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match=r"does not name 'queues\.example\.com' \(cluster\.tls_name\)"):
        named(tmp_path, "node-1", "queues.example.com")
