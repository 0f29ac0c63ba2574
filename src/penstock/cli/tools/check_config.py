"""`penstock check-config`: reports all errors of a configuration at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from penstock.cli.exits import FAILED, reported
from penstock.cli.output import error_console, print_json, print_line, print_table
from penstock.cli.parameters import Json

if TYPE_CHECKING:
    from penstock.config.roles import RoleConfig


@reported
def check_config(
    file: Annotated[Path, typer.Argument(help="The TOML file to check.", show_default=False)],
    role: Annotated[
        Literal["serve", "frontend", "metadata", "node"] | None,
        typer.Option(
            "--role",
            help="The command that the file is for. Default: the only role that has all the settings "
            "of the file, or serve.",
            show_default=False,
        ),
    ] = None,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect", help="Also connect to the cluster's metadata and check its access control."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check a configuration file, together with the environment, and show the resulting values."""
    from penstock.config import ROLES, ConfigurationError, likely_role, load_config

    checked = role if role is not None else likely_role(file)
    try:
        config = load_config(checked, file)
        _check_files(config, file)
        if connect:
            _check_store(config, file)
    except ConfigurationError as error:
        for problem in error.problems:
            if json:
                print_json(
                    {
                        "source": problem.source,
                        "line": problem.line,
                        "field": problem.field,
                        "problem": problem.message,
                    }
                )
            else:
                error_console().print(str(problem), style="red", markup=False)
        raise typer.Exit(FAILED) from None
    from penstock.metadata.store.etcd_settings import without_password

    values = {
        option.key: without_password(option.kind.write(getattr(config, attribute)))
        for attribute, option in ROLES[checked].values()
    }
    if json:
        print_json(values)
    else:
        print_line(f"{file} is good for penstock {checked}", "green")
        print_table(("key", "value"), values.items())


def _check_store(config: RoleConfig, file: Path) -> None:
    """Whether the cluster's metadata answers, and asks who connects; raises `ConfigurationError`."""
    import asyncio

    from penstock.config import ConfigurationError, Problem
    from penstock.config.cluster import ClusterOptions
    from penstock.metadata.opening import StoreUrlError, open_metadata_store
    from penstock.metadata.store.interface import StoreUnavailableError
    from penstock.runtime.cluster.store import cluster_secret
    from penstock.runtime.cluster.store_guard import why_unguarded
    from penstock.runtime.cluster.streams import dial
    from penstock.runtime.cluster.tls import cluster_tls

    if not isinstance(config, ClusterOptions) or config.cluster_metadata is None:
        return
    url, tls = config.cluster_metadata, cluster_tls(config)
    secret = cluster_secret(config.cluster_secret_file) if config.cluster_secret_file is not None else None

    async def look() -> str | None:
        store = await open_metadata_store(url, secret, partial(dial, tls=tls))
        await store.close()
        return await why_unguarded(url, tls)

    try:
        why = asyncio.run(look())
    except (StoreUrlError, StoreUnavailableError) as error:
        why = str(error)
    if why is not None:
        raise ConfigurationError([Problem(str(file), "cluster.metadata", why)])


def _check_files(config: RoleConfig, file: Path) -> None:
    """Certificates, secrets and tokens can only be checked in their files; raises `ConfigurationError`."""
    from penstock.config import ConfigurationError, Problem
    from penstock.config.cluster import ClusterOptions
    from penstock.config.frontend import FrontendConfig
    from penstock.config.monitoring import MonitoringOptions
    from penstock.config.native_tls import NativeTlsOptions
    from penstock.config.sqs import SqsOptions
    from penstock.runtime.cluster.store import cluster_secret
    from penstock.runtime.cluster.tls import cluster_tls
    from penstock.runtime.http.tls import Tls, TlsError
    from penstock.runtime.monitoring.monitoring import monitoring_token
    from penstock.runtime.native.tls import backend_trust, native_tls
    from penstock.runtime.processes.listening import StartError

    problems = []
    try:
        if isinstance(config, ClusterOptions) and config.cluster_secret_file is not None:
            cluster_secret(config.cluster_secret_file)
    except StartError as error:
        problems.append(Problem(str(file), "cluster.secret_file", str(error)))
    try:
        if isinstance(config, MonitoringOptions):
            monitoring_token(config)
    except StartError as error:
        problems.append(Problem(str(file), "monitoring.token_file", str(error)))
    try:
        if isinstance(config, ClusterOptions):
            cluster_tls(config)
    except TlsError as error:
        problems.append(Problem(str(file), "cluster.tls_certificate", str(error)))
    try:
        if isinstance(config, SqsOptions) and config.sqs_tls_certificate and config.sqs_tls_key:
            Tls(Path(config.sqs_tls_certificate), Path(config.sqs_tls_key))
    except TlsError as error:
        problems.append(Problem(str(file), "sqs.tls_certificate", str(error)))
    try:
        if isinstance(config, NativeTlsOptions):
            native_tls(config)
    except TlsError as error:
        problems.append(Problem(str(file), "native.tls_certificate", str(error)))
    try:
        if isinstance(config, FrontendConfig):
            backend_trust(config)
    except TlsError as error:
        problems.append(Problem(str(file), "frontend.backend_ca", str(error)))
    if problems:
        raise ConfigurationError(problems)
