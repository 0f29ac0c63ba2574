"""`penstock serve`: the whole server in one process, its data in one directory."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.cli.exits import reported
from penstock.cli.output import console, print_facts
from penstock.cli.parameters import ConfigFile, Json, ReadyFile
from penstock.cli.processes.role import configured, run_role
from penstock.cli.processes.role_flags import Flags, with_flags
from penstock.config import ROLES, ServeConfig
from penstock.config.roles import SERVE

if TYPE_CHECKING:
    from penstock.runtime.http.sqs_server import SqsServer
    from penstock.runtime.processes.broker import Broker


@reported
@with_flags(ROLES[SERVE], ServeConfig)
def serve(
    flags: Flags,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    json: Json = False,
) -> None:
    """Run the server with all data in one directory. No other service is needed."""
    started = time.perf_counter()
    from penstock.config import load_serve_config

    chosen = configured(load_serve_config, config, flags)
    from penstock.runtime.processes.process import run_server

    run_role(
        partial(run_server, chosen),
        lambda broker: ready_facts(broker, chosen, time.perf_counter() - started),
        lambda broker, facts: _show(broker, chosen, facts),
        json=json,
        ready_file=ready_file,
    )


def ready_facts(broker: Broker, config: ServeConfig, seconds: float) -> dict[str, Any]:
    """All addresses, for programs."""
    from penstock import __version__

    report = broker.report
    return {
        "event": "ready",
        "version": __version__,
        "url": broker.url,
        "host": broker.address.host,
        "port": broker.address.port,
        "sqs_url": broker.sqs_server.url if broker.sqs_server is not None else None,
        "metrics_url": broker.monitoring.url if broker.monitoring is not None else None,
        "data_directory": broker.directory,
        "durability": config.durability,
        "process": os.getpid(),
        "start_seconds": round(seconds, 4),
        "recovery": {
            "queues": report.queues,
            "messages": report.messages,
            "records_replayed": report.replayed,
            "torn_tail": report.torn,
            "damages": list(report.damages),
        },
    }


def _show(broker: Broker, config: ServeConfig, facts: dict[str, Any]) -> None:
    report = broker.report
    durability = {
        "sync": "sync: on disk before it is acknowledged",
        "os": "os: acknowledged before it is on disk; a power cut may lose messages",
    }[config.durability]
    print_facts(
        f"Penstock {facts['version']} is ready",
        {
            "sqs": sqs_line(broker.sqs_server),
            "native": native_line(broker, str(facts["url"])),
            "metrics": facts["metrics_url"] or "off",
            "data": broker.directory,
            "durability": durability,
            "recovered": f"{report.queues:,} queues, {report.messages:,} messages, "
            f"{report.replayed:,} records replayed",
            "started in": f"{facts['start_seconds']:.2f} s",
        },
    )
    target = console()
    if report.torn is not None:
        target.print(f"  torn tail: {report.torn}", style="yellow", markup=False)
    for damage in report.damages:
        target.print(f"  damaged, fenced: {damage}", style="bold red", markup=False)
    if target.is_terminal:
        target.print("  Ctrl-C stops it. Try: penstock queue create orders", style="dim", markup=False)


def native_line(broker: Broker, url: str) -> str:
    """The address of the native protocol, and who may use it."""
    if broker.shared is not None and broker.shared.users.has_users():
        return f"{url}  (clients show the access key of a user)"
    return f"{url}  (no users yet: every program on this machine has access, loopback only)"


def sqs_line(sqs_server: SqsServer | None) -> str:
    """The address of SQS, and who may use it."""
    if sqs_server is None:
        return "off"
    if sqs_server.has_users:
        return f"{sqs_server.url}  (requests must be signed by a user)"
    return f"{sqs_server.url}  (no users yet: any credentials, loopback only)"
