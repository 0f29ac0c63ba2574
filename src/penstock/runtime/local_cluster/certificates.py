"""A temporary authority for a cluster on one machine, and the certificates that it signs, one for each process.

Its key is in the same directory, so it is only for trials and tests; real machines need a real authority.
"""

from __future__ import annotations

import datetime as dt
import os
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

LASTS = dt.timedelta(days=3650)
BEGINS = dt.timedelta(hours=1)
"""So much earlier than now, because clocks differ."""
_PRIVATE = 0o600
_NAMES = (
    x509.DNSName("localhost"),
    x509.IPAddress(ip_address("127.0.0.1")),
    x509.IPAddress(ip_address("::1")),
)


class AuthorityError(Exception):
    """The files of the authority cannot be used; the message names them and what to do."""


class CertificateFiles(NamedTuple):
    """The files of a process: its own certificate and key, and the authority of all."""

    certificate: Path
    key: Path
    authority: Path


class ThrowAwayAuthority:
    """The authority of a directory, created when it is first needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.certificate_file = directory / "ca.pem"
        self._key_file = directory / "ca.key"

    def files(self, name: str) -> CertificateFiles:
        """The files of a process, made if they are not there."""
        found = CertificateFiles(
            self._directory / f"{name}.pem", self._directory / f"{name}.key", self.certificate_file
        )
        if not (found.certificate.exists() and found.key.exists()):
            self.renew(name)
        return found

    def renew(self, name: str) -> None:
        """A new certificate and key for a process, in place of those it had."""
        authority_key, authority = self._authority()
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _begun(name, key)
            .issuer_name(authority.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), *_NAMES]), critical=False)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
            .sign(authority_key, hashes.SHA256())
        )
        self._write(name, certificate, key)

    def _authority(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        if not self.certificate_file.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            name = "throw-away authority of a Penstock cluster"
            certificate = (
                _begun(name, key)
                .issuer_name(_named(name))
                .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
                .sign(key, hashes.SHA256())
            )
            self._write("ca", certificate, key)
        try:
            loaded = serialization.load_pem_private_key(self._key_file.read_bytes(), None)
            certificate = x509.load_pem_x509_certificate(self.certificate_file.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise self._unusable(str(error)) from None
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise self._unusable("its key is not one that Penstock made")
        return loaded, certificate

    def _unusable(self, why: str) -> AuthorityError:
        return AuthorityError(
            f"the authority in {self.certificate_file} and {self._key_file} cannot be used ({why}): put the files back, "
            f"or delete the directory {self._directory} while the cluster is down, so that all certificates are created again"
        )

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        """The key first: a certificate without its key would be taken for a whole one."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        for file, data in (
            (self._directory / f"{name}.key", private),
            (self._directory / f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
        ):
            temporary = file.with_name(f".{file.name}.new")
            temporary.unlink(missing_ok=True)
            with os.fdopen(
                os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb"
            ) as stream:
                stream.write(data)
            temporary.replace(file)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _begun(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BEGINS)
        .not_valid_after(now + LASTS)
    )
