"""The options of `penstock frontend`: SQS, and for a cluster the native protocol, in front of nodes in other processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.cluster import ClusterOptions
from penstock.config.monitoring import MONITORING_PORT, MonitoringOptions
from penstock.config.native_tls import NativeTlsOptions
from penstock.config.option import option, options_of
from penstock.config.serve import NATIVE_PORT
from penstock.config.sqs import MetadataOptions, SqsOptions, UsageOptions
from penstock.model.limits import REPLICAS_PER_PARTITION


@dataclass(frozen=True, kw_only=True)
class FrontendConfig(
    SqsOptions, MetadataOptions, UsageOptions, MonitoringOptions, NativeTlsOptions, ClusterOptions
):
    """All options of `penstock frontend`."""

    monitoring_listen: Address | None = field(
        default=None,
        metadata=option(
            "frontend.monitoring_listen",
            kinds.optional("off", kinds.address(MONITORING_PORT)),
            "Address of `/metrics` (for Prometheus) and `/health` of the front end. Port 0 chooses a free "
            "port; `off` disables them. Other machines need `monitoring.token_file`.",
            "--monitoring-listen",
        ),
    )
    backend: Address = field(
        default=Address("127.0.0.1", NATIVE_PORT),
        metadata=option(
            "frontend.backend",
            kinds.address(NATIVE_PORT, lowest_port=1),
            "Address of the native protocol of the server that stores the queues.",
            "--backend",
        ),
    )
    backend_ca: str | None = field(
        default=None,
        metadata=option(
            "frontend.backend_ca",
            kinds.optional("none", kinds.file()),
            "Authority (PEM) that signed the `native.tls_certificate` of the server at `frontend.backend`, "
            "which is then reached over TLS; the certificate must name that host. `system`: the authorities "
            "that this machine trusts. `none`: no TLS.",
            "--backend-ca",
        ),
    )
    native_listen: Address | None = field(
        default=None,
        metadata=option(
            "frontend.native_listen",
            kinds.optional("off", kinds.address(NATIVE_PORT)),
            "With a cluster: address for clients of the native protocol. Port 0 chooses a free port; `off` "
            "disables it.",
            "--native-listen",
        ),
    )
    frontend_replicas: int = field(
        default=3,
        metadata=option(
            "frontend.replicas",
            kinds.count(1, REPLICAS_PER_PARTITION),
            "With a cluster: number of replicas of a new queue that does not set `replicas`. Set the same "
            "value on all front ends. A queue with one replica must also set `min_in_sync` to 1.",
        ),
    )


OPTIONS = options_of(FrontendConfig)
