"""An etcd that asks who one is, and one that is spoken to over TLS."""

from __future__ import annotations

import asyncio
import base64
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.metadata.store.etcd import EtcdStore, open_etcd_store
from penstock.metadata.store.etcd_client import EtcdClient
from penstock.metadata.store.etcd_settings import parse_etcd_url
from penstock.metadata.store.interface import ABSENT, StoreRefusedError, StoreUnavailableError
from penstock.runtime.local_cluster.etcd_cluster import plan_members
from penstock.runtime.local_cluster.etcd_process import EtcdProcess, MemberTls
from tests.etcd_servers import EtcdServers
from tests.ports import pairs_of_ports
from tests.runtime.harness import async_test


async def turn_on_authentication(etcd: EtcdServers) -> None:
    """A root, as etcd demands, and `al`, who may read and write what begins with `ours/`."""
    for user in ("root", "al"):
        await etcd.ask("/v3/auth/user/add", {"name": user, "password": f"{user}-password"})
        await etcd.ask("/v3/auth/role/add", {"name": user})
        await etcd.ask("/v3/auth/user/grant", {"user": user, "role": user})
    ours = {"permType": "READWRITE", "key": _base64(b"ours/"), "range_end": _base64(b"ours0")}
    await etcd.ask("/v3/auth/role/grant", {"name": "al", "perm": ours})
    await etcd.ask("/v3/auth/enable", {})


def _base64(text: bytes) -> str:
    return base64.b64encode(text).decode()


@async_test
async def test_a_user_and_a_password(etcd_of_its_own: EtcdServers) -> None:
    etcd = etcd_of_its_own
    await turn_on_authentication(etcd)
    address = etcd.members[0].member.address
    for who, explained in (
        ("", "asks for a user and a password"),
        ("al:wrong@", "authentication failed"),
        ("nobody:x@", "authentication failed"),
    ):
        with pytest.raises(StoreUnavailableError, match=explained):
            await open_etcd_store(f"etcd://{who}{address}/ours")
    with pytest.raises(StoreUnavailableError, match="needs a role"):
        await open_etcd_store(f"etcd://al:al-password@{address}/theirs")
    denied = EtcdStore(parse_etcd_url(f"etcd://al:al-password@{address}/theirs"))
    with pytest.raises(StoreUnavailableError, match="refuses the watch"):
        await anext(denied.watch("", ABSENT))
    await denied.close()

    store = await open_etcd_store(f"etcd://al:al-password@{address}/ours")
    version = await store.put("a", b"1")
    lease = await store.grant(60)
    second = await store.put("a", b"2", version, lease)
    assert await store.renew(lease)
    watch = store.watch("", version - 1)
    assert [(await anext(watch)).version for _ in range(2)] == [version, second]

    await forget_tokens(etcd)
    third = await store.put("a", b"3", second)
    assert await anext(watch) == ("a", b"3", third)
    # Now it is the watch that has to prove anew who we are, because its connection breaks.
    await forget_tokens(etcd)
    etcd.members[0].signal(signal.SIGKILL)
    waiting = asyncio.ensure_future(anext(watch))
    await etcd.heal()
    other = await open_etcd_store(f"etcd://al:al-password@{address}/ours")
    fourth = await other.put("a", b"4", third)
    assert await waiting == ("a", b"4", fourth)
    await watch.aclose()
    await store.close()
    await other.close()


async def forget_tokens(etcd: EtcdServers) -> None:
    """Makes etcd refuse the tokens it gave to `al`, as it does when their time is over."""
    client = EtcdClient(parse_etcd_url(f"etcd://root:root-password@{etcd.members[0].member.address}"))
    await client.ask("/v3/auth/user/changepw", {"name": "al", "password": "al-password"}, dict, again=True)
    client.close()


class Certificates:
    """An authority, and certificates that it signed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the authority of a test")])
        self.authority = self._write("ca", self._sign("the authority of a test", self._key, True), self._key)[
            0
        ]

    def make(self, name: str) -> tuple[Path, Path]:
        """The files of a certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._write(name, self._sign(name, key, False), key)

    def _sign(self, name: str, key: ec.EllipticCurvePrivateKey, authority: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            # Both: etcd's gateway shows the member's certificate to the member itself.
            both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            address = x509.IPAddress(ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False).add_extension(
                x509.SubjectAlternativeName([address]), critical=False
            )
        return builder.sign(self._key, hashes.SHA256())

    def _write(
        self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> tuple[Path, Path]:
        files = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files


@async_test
async def test_both_sides_show_a_certificate(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    server, ours = certificates.make("server"), certificates.make("ours")
    (tmp_path / "strange").mkdir()
    strange = Certificates(tmp_path / "strange")
    (planned,) = plan_members(tmp_path, pairs_of_ports(1), heartbeat_ms=20, election_ms=100)
    secured = replace(
        planned, client_tls=MemberTls(certificate=server[0], key=server[1], client_ca=certificates.authority)
    )
    process = EtcdProcess(secured)
    process.start()
    try:
        await process.ready()
        trusted = f"ca={certificates.authority}"
        shown = f"certificate={ours[0]}&key={ours[1]}"
        store = await open_etcd_store(f"etcds://{secured.address}/tls?{trusted}&{shown}")
        version = await store.put("a", b"1")
        watch = store.watch("", version - 1)
        assert await anext(watch) == ("a", b"1", version)
        await watch.aclose()
        await store.close()

        async def refused(url: str, explained: str) -> None:
            with pytest.raises(StoreUnavailableError, match=explained):
                await open_etcd_store(url)

        at = f"{secured.address}?timeout=1"
        await asyncio.gather(
            refused(f"etcd://{at}", "if it wants TLS"),
            refused(f"etcds://{at}&{shown}", "certificate verify failed"),
            refused(f"etcds://{at}&{trusted}", "certificate|closed"),
            refused(f"etcds://{at}&ca={strange.authority}&{shown}", "verify failed"),
        )
        # At once: the test would not wait for as long as this is tried otherwise.
        with pytest.raises(StoreRefusedError, match="no member of etcd can be trusted"):
            await open_etcd_store(f"etcds://{secured.address}?timeout=600&ca={strange.authority}&{shown}")
        with pytest.raises(StoreRefusedError, match="TLS files"):
            await open_etcd_store(f"etcds://{secured.address}?ca={tmp_path / 'missing.pem'}")
    finally:
        process.signal(signal.SIGKILL)
