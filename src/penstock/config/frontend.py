"""What `penstock frontend` can be told: SQS, and for a cluster the native protocol, in front of what runs elsewhere."""

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
    """Everything `penstock frontend` runs with."""

    monitoring_listen: Address | None = field(
        default=None,
        metadata=option(
            "frontend.monitoring_listen",
            kinds.optional("off", kinds.address(MONITORING_PORT)),
            "Where monitoring finds `/metrics` (for Prometheus) and `/health` of the front end. Port 0 lets the system choose "
            "one; `off`: nowhere. Other machines reach it with `monitoring.token_file` only.",
            "--monitoring-listen",
        ),
    )
    backend: Address = field(
        default=Address("127.0.0.1", NATIVE_PORT),
        metadata=option(
            "frontend.backend",
            kinds.address(NATIVE_PORT, lowest_port=1),
            "The server that keeps the queues: where its native protocol listens.",
            "--backend",
        ),
    )
    backend_ca: str | None = field(
        default=None,
        metadata=option(
            "frontend.backend_ca",
            kinds.optional("none", kinds.file()),
            "With it the server at `frontend.backend` is spoken to over TLS: the authority (PEM) that signed its "
            "`native.tls_certificate`, which must name the host of `frontend.backend`; `system`: those that this machine "
            "trusts. `none`: no TLS.",
            "--backend-ca",
        ),
    )
    native_listen: Address | None = field(
        default=None,
        metadata=option(
            "frontend.native_listen",
            kinds.optional("off", kinds.address(NATIVE_PORT)),
            "With a cluster: where clients connect with the native protocol. Port 0 lets the system choose one; `off`: "
            "nowhere.",
            "--native-listen",
        ),
    )
    frontend_replicas: int = field(
        default=3,
        metadata=option(
            "frontend.replicas",
            kinds.count(1, REPLICAS_PER_PARTITION),
            "With a cluster: how many nodes hold a queue whose maker says nothing of it. The same for all front ends. "
            "One replica on purpose is asked for together with `min_in_sync` 1.",
        ),
    )


OPTIONS = options_of(FrontendConfig)
