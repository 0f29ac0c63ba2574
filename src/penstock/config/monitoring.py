"""The options of the monitoring server: its address and its token."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.option import option

MONITORING_PORT = 9325


@dataclass(frozen=True, kw_only=True)
class MonitoringOptions:
    """The monitoring server."""

    monitoring_listen: Address | None = field(
        default=Address("127.0.0.1", MONITORING_PORT),
        metadata=option(
            "monitoring.listen",
            kinds.optional("off", kinds.address(MONITORING_PORT)),
            "Address of `/metrics` (for Prometheus) and `/health`. Port 0 chooses a free port; `off` "
            "disables them. Other machines need `monitoring.token_file`.",
            "--monitoring-listen",
        ),
    )
    monitoring_token_file: str | None = field(
        default=None,
        metadata=option(
            "monitoring.token_file",
            kinds.optional("none", kinds.file()),
            "File with a token that requests for `/metrics` must contain (`Authorization: Bearer`). `none`: "
            "no token, and only this machine has access.",
        ),
    )
