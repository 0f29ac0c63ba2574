"""The server's certificate and key: loaded with clear errors, and replaced while serving."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

from penstock.wire.credentials import channel_of


class TlsError(Exception):
    """The certificate or the key cannot be used; the message names the file and the reason."""


class _Showing(ssl.SSLContext):
    """A context with a reference to its certificate."""

    channel: bytes = b""


def shown_in(context: ssl.SSLContext) -> bytes:
    """The digest of a connection's certificate (`channel_of`); empty if the context is none of `Tls`."""
    return context.channel if isinstance(context, _Showing) else b""


class Tls:
    """A context for the listening socket; new connections get the certificate that was loaded last."""

    def __init__(
        self,
        certificate_file: Path,
        key_file: Path,
        *,
        least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
        protocols: Sequence[str] = ("http/1.1",),
    ) -> None:
        self._least = least
        self._protocols = protocols
        """The protocols to offer to clients."""
        self._certificate_file = certificate_file
        self._key_file = key_file
        self._current = self._load()
        self.context = self._load()
        """The context for listening; it stays the same object."""
        self.context.sni_callback = self._choose

    def reload(self) -> None:
        """Loads both files again; when that fails, the certificate in use stays in use."""
        self._current = self._load()

    def _choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        # A context that is half replaced would break handshakes, so that a whole one is put in its place.
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = _Showing(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._least
        if self._protocols:
            context.set_alpn_protocols(self._protocols)
        load_certificate(context, self._certificate_file, self._key_file)
        context.channel = channel_of(_first_in(self._certificate_file))
        return context


def _first_in(file: Path) -> bytes:
    """The certificate that is shown, in DER form; those after it say who signed it."""
    begin, end = ssl.PEM_HEADER, ssl.PEM_FOOTER
    first = readable("certificate", file).decode("latin-1").partition(begin)[2].partition(end)[0]
    return ssl.PEM_cert_to_DER_cert(f"{begin}{first}{end}")


def load_certificate(context: ssl.SSLContext, certificate_file: Path, key_file: Path) -> None:
    """Gives a context the certificate that it shows; raises `TlsError`."""
    certificate = readable("certificate", certificate_file)
    readable("key", key_file)
    if b"-----BEGIN CERTIFICATE-----" not in certificate:
        raise TlsError(f"the certificate file {certificate_file} holds no certificate in PEM form")
    encrypted = False

    def password() -> bytes:
        nonlocal encrypted
        encrypted = True
        return b""

    try:
        context.load_cert_chain(certificate_file, key_file, password)
    except (ssl.SSLError, OSError, ValueError) as error:
        if encrypted:
            raise TlsError(
                f"the key file {key_file} is encrypted; give one without a passphrase, "
                f"such as `openssl pkey -in {key_file} -out plain.pem` writes"
            ) from error
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(
                f"the key in {key_file} does not belong to the certificate in {certificate_file}"
            ) from error
        raise TlsError(
            f"the certificate {certificate_file} and the key {key_file} cannot be loaded; "
            f"both must be whole and in PEM form ({error})"
        ) from error


def load_authority(context: ssl.SSLContext, file: Path) -> str:
    """Has a context trust who is in the file; gives that back in PEM form. Raises `TlsError`."""
    content = readable("authority", file)
    try:
        authority = content.decode("ascii")
        context.load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"the authority file {file} holds no certificates in PEM form ({error})") from error
    return authority


def readable(noun: str, path: Path) -> bytes:
    """The content of a file, or the reason why there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise TlsError(f"the {noun} file {path} does not exist") from error
    except OSError as error:
        raise TlsError(f"the {noun} file {path} cannot be read: {error.strerror}") from error
