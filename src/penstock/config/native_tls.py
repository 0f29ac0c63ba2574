"""The options of native clients' connections: TLS, and balancers in between."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.option import option
from penstock.config.shared import SharedOptions


@dataclass(frozen=True, kw_only=True)
class NativeTlsOptions(SharedOptions):
    """The certificate of the native protocol, and the trusted balancers."""

    native_trusted_proxies: tuple[str, ...] | None = field(
        default=None,
        metadata=option(
            "native.trusted_proxies",
            kinds.optional("none", kinds.networks()),
            "Load balancers that name the client of a connection in a PROXY protocol header (version 1 or "
            "2; `send-proxy-v2` in HAProxy), so that limits, policies and usage apply to the client. Such a "
            "header from any other address is refused. `none`: it is refused from every address.",
        ),
    )

    native_tls_certificate: str | None = field(
        default=None,
        metadata=option(
            "native.tls_certificate",
            kinds.optional("none", kinds.file()),
            "Certificate (PEM, with its chain) for native clients, which then must connect with "
            "`penstocks://HOST:PORT`. `none`: no TLS. Needs `native.tls_key`.",
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
