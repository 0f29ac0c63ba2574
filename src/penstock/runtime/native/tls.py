"""TLS of the native protocol: the server's certificate, and the certificates that a front end trusts as a client.

Clients are users with access keys and without certificates. A client without TLS gets an explanation in plain bytes.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config.frontend import FrontendConfig
from penstock.config.native_tls import NativeTlsOptions
from penstock.model.errors import ErrorCode
from penstock.runtime.http.tls import Tls, TlsError, load_authority
from penstock.runtime.processes.listening import SettingError
from penstock.wire.frames import encode_frame
from penstock.wire.messages import Failed, encode_message

PLAIN, SECURE = "penstock", "penstocks"
"""How urls of servers begin."""
SYSTEM = "system"
"""Instead of a file: the authorities that the machine trusts."""
_PLAIN_ANSWER = b"".join(
    encode_frame(
        0,
        encode_message(
            Failed(
                ErrorCode.BAD_REQUEST,
                f"this server uses TLS: connect with {SECURE}://HOST:PORT (and ?ca=FILE if a private authority signed its "
                "certificate)",
            )
        ),
    )
)


class NativeTls:
    """The TLS of a server; raises `TlsError` if its files cannot be used."""

    def __init__(self, certificate_file: Path, key_file: Path) -> None:
        self._tls = Tls(certificate_file, key_file, least=ssl.TLSVersion.TLSv1_3, protocols=())
        self.server = self._tls.context
        self.plain_answer = _PLAIN_ANSWER

    def why_refused(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Never refuses, because no certificate was requested."""
        return None

    def reload(self) -> None:
        """Takes over a renewed certificate; raises `TlsError` and keeps the old one where that fails."""
        self._tls.reload()


class BackendTrust:
    """The certificates that a front end accepts for its server; raises `TlsError`."""

    def __init__(self, authority: str) -> None:
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.minimum_version = ssl.TLSVersion.TLSv1_3
        if authority == SYSTEM:
            self.client.load_default_certs()
        else:
            load_authority(self.client, Path(authority))

    def name_at(self, host: str) -> str:
        """The host itself."""
        return host


def native_tls(config: NativeTlsOptions) -> NativeTls | None:
    """The TLS of a configuration; None if it asks for none. Raises `TlsError`."""
    if config.native_tls_certificate is None or config.native_tls_key is None:
        return None
    return NativeTls(Path(config.native_tls_certificate), Path(config.native_tls_key))


def backend_trust(config: FrontendConfig) -> BackendTrust | None:
    """The same of the server that a front end asks."""
    return BackendTrust(config.backend_ca) if config.backend_ca is not None else None


def native_certificate(config: NativeTlsOptions) -> NativeTls | None:
    """The certificate of the process; raises `SettingError`."""
    try:
        return native_tls(config)
    except TlsError as error:
        raise SettingError(str(error)) from None


def trusted_backend(config: FrontendConfig) -> BackendTrust | None:
    """Whom the process trusts; raises `SettingError`."""
    try:
        return backend_trust(config)
    except TlsError as error:
        raise SettingError(str(error)) from None


def native_url(address: object, tls: NativeTls | None) -> str:
    """The URL for clients."""
    return f"{SECURE if tls is not None else PLAIN}://{address}"
