"""The certificate of a process for the other processes of its cluster, and the checks of theirs.

A cluster has one authority, and every process with a certificate of it belongs to the cluster. So names in certificates
are ignored unless the operator requires them (`cluster.tls_name`). If the authority signs for others too, all certificates
of the cluster contain the same name, and both sides check it; or a server's certificate names the host to which the client
connects.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from penstock.config.cluster import ClusterOptions
from penstock.runtime.cluster.streams import Shown
from penstock.runtime.http.tls import TlsError, load_authority, load_certificate, readable
from penstock.wire.tls_reasons import is_wrong_name

HOST = "host"
"""Instead of a name: the host that was dialled."""
_TURNS = 4
"""Of a handshake: more than TLS 1.3 needs."""


class _Contexts(NamedTuple):
    server: ssl.SSLContext
    client: ssl.SSLContext
    reader: ssl.SSLContext
    authority: str


class ClusterTls:
    """The TLS contexts of a process; raises `TlsError` if its own files do not match."""

    plain_answer: bytes = b""
    """Clients without TLS get no answer."""

    def __init__(
        self, certificate_file: Path, key_file: Path, authority_file: Path, name: str | None = None
    ) -> None:
        self._name = name
        """The name that the others' certificates must contain; None: any."""
        self._certificate_file = certificate_file
        self._key_file = key_file
        self._authority_file = authority_file
        self._current = self._load()
        self.server = self._load().server
        """The context for listening; it stays the same object."""
        self.server.sni_callback = self._choose
        self.readers = Shown(self._load().reader)
        """The same certificate, for readers, who have tickets and need not show one."""
        self.readers.server.sni_callback = self._choose_for_reader

    @property
    def client(self) -> ssl.SSLContext:
        """The context for the next connection."""
        return self._current.client

    @property
    def authority(self) -> str:
        """The authority of the cluster's processes, in PEM form."""
        return self._current.authority

    def name_at(self, host: str) -> str:
        """The name that a server at a host must have, if names are checked."""
        return host if self._name is None or self._name == HOST else self._name

    def name_for_readers(self, host: str) -> str:
        """The same for clients that get the address with a ticket; empty: names are not checked."""
        return "" if self._name is None else self.name_at(host)

    def why_refused(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Why one who comes in with a certificate of the authority is refused nevertheless; None: it is not."""
        if self._name is None or self._name == HOST:
            return None  # the address of a client says nothing about its name
        names = [name for kind, name in (certificate or {}).get("subjectAltName", ()) if kind == "DNS"]
        if any(name.lower() == self._name.lower() for name in names):
            return None
        shown = ", ".join(names) if names else "no name"
        return f"its certificate is for {shown}, not for {self._name} (cluster.tls_name)"

    def reload(self) -> None:
        """Loads all files again, for connections to come; when that fails, what is in use stays in use."""
        self._current = self._load()

    def _choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        # A context that is half replaced would break handshakes, so that a whole one is put in its place.
        connection.context = self._current.server

    def _choose_for_reader(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        connection.context = self._current.reader

    def _load(self) -> _Contexts:
        server = self._context(ssl.PROTOCOL_TLS_SERVER)
        server.verify_mode = ssl.CERT_REQUIRED
        server.num_tickets = 0  # a resumed session would skip the certificate
        client = self._context(ssl.PROTOCOL_TLS_CLIENT)
        reader = self._context(ssl.PROTOCOL_TLS_SERVER)
        reader.num_tickets = 0
        name = self._name if self._name != HOST else None
        client.check_hostname = name is not None
        try:
            _greet(server, client, name)
        except ssl.SSLCertVerificationError as error:
            if is_wrong_name(error.verify_code):
                raise TlsError(
                    f"the certificate {self._certificate_file} does not name {name!r} (cluster.tls_name), so other processes "
                    "would refuse it: it needs that name as a subject alternative name (DNS)"
                ) from error
            raise TlsError(
                f"the certificate {self._certificate_file} would be refused by the cluster's authority "
                f"{self._authority_file}: {error.verify_message}"
            ) from error
        except ssl.SSLError as error:
            raise TlsError(f"the certificate {self._certificate_file} cannot be used: {error}") from error
        client.check_hostname = self._name is not None
        authority = readable("authority", self._authority_file).decode("ascii")
        return _Contexts(server, client, reader, authority)

    def _context(self, kind: int) -> ssl.SSLContext:
        context = ssl.SSLContext(kind)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        load_certificate(context, self._certificate_file, self._key_file)
        load_authority(context, self._authority_file)
        return context


def cluster_tls(config: ClusterOptions) -> ClusterTls | None:
    """The TLS of a configuration; None if it asks for none. Raises `TlsError`."""
    certificate, key, authority = (
        config.cluster_tls_certificate,
        config.cluster_tls_key,
        config.cluster_tls_ca,
    )
    if certificate is None or key is None or authority is None:
        return None
    return ClusterTls(Path(certificate), Path(key), Path(authority), config.cluster_tls_name)


def _greet(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None) -> None:
    """Both sides of a connection to oneself, in memory: it comes about only where others would take the certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(_TURNS):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
