"""TLS: encrypted requests, a certificate renewed while serving, and errors a person can act on."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from penstock.runtime.http.tls import Tls, TlsError
from tests.runtime.harness import until
from tests.runtime.http.certificate import write_certificate
from tests.runtime.http.harness import HeldRequests, answer, echo, on_both_loops, request_bytes, serving


class Files:
    """A certificate and its key in a directory; each `write` makes both anew."""

    def __init__(self, directory: Path) -> None:
        self.certificate = directory / "server.pem"
        self.key = directory / "server.key"
        self.write()

    def write(self, passphrase: bytes | None = None) -> None:
        write_certificate(self.certificate, self.key, passphrase=passphrase)

    def load(self) -> Tls:
        return Tls(self.certificate, self.key)

    def trust(self) -> ssl.SSLContext:
        """What a client trusts that was given the certificate of now."""
        return ssl.create_default_context(cafile=str(self.certificate))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@on_both_loops
async def test_requests_are_served_over_tls(files: Files) -> None:
    held = HeldRequests()
    async with serving(held, tls=files.load().context) as served:
        client = await served.client(files.trust(), "localhost")
        client.send(request_bytes("/0", b"x" * 100_000) + request_bytes("/1"))
        for number in range(2):
            visit = await held.visit(number)
            assert visit.peer.secure
            visit.reply(answer(b"y" * 300_000))
        assert [len(got.body) for got in await client.answers(2)] == [300_000, 300_000]


@on_both_loops
async def test_a_client_that_leaves_over_tls_cancels_its_requests(files: Files) -> None:
    held = HeldRequests()
    async with serving(held, tls=files.load().context) as served:
        client = await served.client(files.trust(), "localhost")
        client.request()
        visit = await held.visit(0)
        client.close()
        await until(lambda: not served.server.connections)
        assert visit.cancelled == 1


@on_both_loops
async def test_who_says_nothing_in_a_handshake_keeps_nobody_out(files: Files) -> None:
    async with serving(echo, tls=files.load().context, handshakes=2) as served:
        silent = [await served.client() for _ in range(10)]
        client = await served.client(files.trust(), "localhost")
        client.request()
        assert (await client.answer()).status == 200
        for one in silent[:8]:
            assert await one.ended() == b""


@on_both_loops
async def test_a_refusal_reaches_its_client_over_tls(files: Files) -> None:
    async with serving(echo, tls=files.load().context) as served:
        client = await served.client(files.trust(), "localhost")
        client.send("garbage\r\n\r\n")
        assert (await client.answer()).status == 400
        client.close()
        await until(lambda: not served.server.connections)


@on_both_loops
async def test_a_client_that_speaks_no_tls_is_turned_away_and_the_server_lives_on(files: Files) -> None:
    async with serving(echo, tls=files.load().context) as served:
        plain = await served.client()
        plain.request()
        await plain.ended()
        client = await served.client(files.trust(), "localhost")
        client.request()
        assert (await client.answer()).status == 200


@on_both_loops
async def test_a_renewed_certificate_is_taken_over_while_serving(files: Files) -> None:
    tls = files.load()
    async with serving(echo, tls=tls.context) as served:
        old = await served.client(files.trust(), "localhost")
        files.write()
        tls.reload()
        new = await served.client(files.trust(), "localhost")
        for client in (old, new):
            client.request()
            assert (await client.answer()).status == 200


@on_both_loops
async def test_a_renewed_certificate_reaches_clients_that_name_no_server(files: Files) -> None:
    tls = files.load()
    files.write()
    tls.reload()
    trust = files.trust()
    trust.check_hostname = False
    async with serving(echo, tls=tls.context) as served:
        client = await served.client(trust, "")
        client.request()
        assert (await client.answer()).status == 200


@on_both_loops
async def test_a_renewal_that_cannot_be_used_leaves_the_old_certificate(files: Files) -> None:
    tls = files.load()
    trust = files.trust()
    files.certificate.write_text("half a certifi")
    with pytest.raises(TlsError):
        tls.reload()
    async with serving(echo, tls=tls.context) as served:
        client = await served.client(trust, "localhost")
        client.request()
        assert (await client.answer()).status == 200


def refusal_of(files: Files) -> str:
    with pytest.raises(TlsError) as caught:
        files.load()
    return str(caught.value)


def test_a_missing_file_is_named(files: Files) -> None:
    files.key.unlink()
    assert refusal_of(files) == f"the key file {files.key} does not exist"
    files.certificate.unlink()
    assert refusal_of(files) == f"the certificate file {files.certificate} does not exist"


def test_a_file_that_cannot_be_read_is_named(files: Files) -> None:
    files.key.unlink()
    files.key.mkdir()
    assert refusal_of(files) == f"the key file {files.key} cannot be read: Is a directory"


def test_a_file_that_holds_no_certificate_is_named(files: Files) -> None:
    files.certificate.write_bytes(files.key.read_bytes())
    assert refusal_of(files) == f"the certificate file {files.certificate} holds no certificate in PEM form"


def test_the_key_of_another_certificate_is_told_apart(files: Files) -> None:
    other_key = files.key.read_bytes()
    files.write()
    files.key.write_bytes(other_key)
    assert "does not belong to the certificate" in refusal_of(files)


def test_an_encrypted_key_is_told_apart(files: Files) -> None:
    files.write(passphrase=b"secret")
    assert "is encrypted; give one without a passphrase" in refusal_of(files)


def test_a_damaged_key_is_told_apart(files: Files) -> None:
    files.key.write_bytes(files.key.read_bytes()[:80])
    assert "both must be whole and in PEM form" in refusal_of(files)
