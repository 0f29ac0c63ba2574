"""What every process that shows figures can be told: where, and to whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.option import option

MONITORING_PORT = 9325


@dataclass(frozen=True, kw_only=True)
class MonitoringOptions:
    """Where monitoring looks."""

    monitoring_listen: Address | None = field(
        default=Address("127.0.0.1", MONITORING_PORT),
        metadata=option(
            "monitoring.listen",
            kinds.optional("off", kinds.address(MONITORING_PORT)),
            "Where monitoring finds `/metrics` (for Prometheus) and `/health`. Port 0 lets the system choose one; "
            "`off`: nowhere. Other machines reach it with `monitoring.token_file` only.",
            "--monitoring-listen",
        ),
    )
    monitoring_token_file: str | None = field(
        default=None,
        metadata=option(
            "monitoring.token_file",
            kinds.optional("none", kinds.file()),
            "A file with a token; who looks at `/metrics` shows it (`Authorization: Bearer`). `none`: nobody is asked, and "
            "only this machine can look.",
        ),
    )
