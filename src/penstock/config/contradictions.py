"""Contradictions between fields of a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.config.cluster import ClusterOptions
from penstock.config.frontend import FrontendConfig
from penstock.config.native_tls import NativeTlsOptions
from penstock.config.serve import ServeConfig
from penstock.config.shared import SharedOptions
from penstock.config.sqs import SqsOptions

Contradiction = tuple[str, str]
"""The key to change, and why."""


def contradictions(config: SharedOptions) -> Iterator[Contradiction]:
    """Everything in the configuration that cannot work together."""
    if isinstance(config, SqsOptions):
        yield from _tls("sqs", config.sqs_tls_certificate, config.sqs_tls_key)
    if isinstance(config, NativeTlsOptions):
        yield from _tls("native", config.native_tls_certificate, config.native_tls_key)
    if isinstance(config, ClusterOptions):
        yield from _cluster_tls(config)
    if isinstance(config, ServeConfig):
        yield from _listeners(config)
        yield from _storage(config)
    elif isinstance(config, FrontendConfig):
        yield from _front_end(config)


def _tls(table: str, certificate: str | None, key: str | None) -> Iterator[Contradiction]:
    if certificate is not None and key is None:
        yield f"{table}.tls_key", f"is missing; {table}.tls_certificate needs its private key"
    if key is not None and certificate is None:
        yield f"{table}.tls_certificate", f"is missing; {table}.tls_key is the private key of a certificate"


def _cluster_tls(config: ClusterOptions) -> Iterator[Contradiction]:
    parts = {
        "cluster.tls_certificate": config.cluster_tls_certificate,
        "cluster.tls_key": config.cluster_tls_key,
        "cluster.tls_ca": config.cluster_tls_ca,
    }
    given = [key for key, value in parts.items() if value is not None]
    for key, value in parts.items():
        if given and value is None:
            yield key, f"is missing; {given[0]} needs it"
    if config.cluster_tls_name is not None and not given:
        yield "cluster.tls_name", "is about certificates, and there is no cluster.tls_certificate"


def _front_end(config: FrontendConfig) -> Iterator[Contradiction]:
    if config.sqs_listen is None and (config.cluster_metadata is None or config.native_listen is None):
        yield "sqs.listen", "is off, and a front end that listens nowhere has nothing to do; name HOST:PORT"
    if config.cluster_metadata is not None and config.cluster_secret_file is None:
        yield "cluster.secret_file", "is missing; nodes of a cluster refuse processes without its secret"
    native = config.native_listen
    if native is not None and native.port and native == config.sqs_listen:
        yield "frontend.native_listen", f"{native} is where sqs.listen listens; choose another port"
    metrics = config.monitoring_listen
    if metrics is not None and metrics.port and metrics in (native, config.sqs_listen):
        yield "frontend.monitoring_listen", f"{metrics} is where clients connect; choose another port"
    if native is not None and config.cluster_metadata is None:
        yield (
            "frontend.native_listen",
            "is for clusters (cluster.metadata); clients of one server connect to it",
        )


def _listeners(config: ServeConfig) -> Iterator[Contradiction]:
    if config.listen.port and config.listen == config.sqs_listen:
        yield "sqs.listen", f"{config.sqs_listen} is where native.listen listens; choose another port"
    metrics = config.monitoring_listen
    if metrics is not None and metrics.port and metrics in (config.listen, config.sqs_listen):
        yield "monitoring.listen", f"{metrics} is where clients connect; choose another port"


def _storage(config: ServeConfig) -> Iterator[Contradiction]:
    checkpoint_bytes, file_bytes = config.checkpoint_bytes, config.journal_file_bytes
    if checkpoint_bytes < file_bytes:
        least = f"storage.journal_file_size ({file_bytes} bytes)"
        yield "storage.checkpoint_size", f"({checkpoint_bytes} bytes) must be at least {least}"
    if file_bytes % 4096:
        yield "storage.journal_file_size", f"{file_bytes} is not a multiple of 4096 bytes"
