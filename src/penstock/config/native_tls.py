"""What a server or a front end is told of the connections of its native clients: TLS, and balancers in between."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.option import option
from penstock.config.shared import SharedOptions


@dataclass(frozen=True, kw_only=True)
class NativeTlsOptions(SharedOptions):
    """The certificate of the native protocol, and who passes connections on."""

    native_trusted_proxies: tuple[str, ...] | None = field(
        default=None,
        metadata=option(
            "native.trusted_proxies",
            kinds.optional("none", kinds.networks()),
            "Load balancers that say whose connection they pass on, with a header of the PROXY protocol (version 1 or 2; "
            "`send-proxy-v2` in HAProxy), so that limits, policies and the record of requests are about the client and not about "
            "them. From everybody else such a header is refused. `none`: from everybody.",
        ),
    )

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
