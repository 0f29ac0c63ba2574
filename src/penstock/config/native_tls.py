"""What a server or a front end is told of TLS with its native clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.option import option
from penstock.config.shared import SharedOptions


@dataclass(frozen=True, kw_only=True)
class NativeTlsOptions(SharedOptions):
    """The certificate of the native protocol."""

    native_tls_certificate: str | None = field(
        default=None,
        metadata=option(
            "native.tls_certificate",
            kinds.optional("none", kinds.file()),
            "The certificate (PEM, with its chain) that is shown to native clients, who then connect with "
            "`penstocks://HOST:PORT` and not otherwise; `none`: no TLS. Needs `native.tls_key`.",
            "--native-tls-certificate",
        ),
    )
    native_tls_key: str | None = field(
        default=None,
        metadata=option(
            "native.tls_key",
            kinds.optional("none", kinds.file()),
            "The private key (PEM, not encrypted) of `native.tls_certificate`.",
            "--native-tls-key",
        ),
    )
