"""`penstock cluster`: a whole cluster on this machine, and the status of any cluster."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.cluster import processes as cluster_processes
from penstock.cli.cluster.elect import elect
from penstock.cli.cluster.seal import seal
from penstock.cli.cluster.status import status
from penstock.cli.cluster.target import (
    DEFAULT_DIRECTORY,
    ClusterData,
    cluster_errors,
    local_cluster,
    with_store,
)
from penstock.cli.exits import FAILED, UNREACHABLE, USAGE, CommandError, reported
from penstock.cli.output import error_console, print_facts, print_hint, print_json, print_line
from penstock.cli.parameters import Json

if TYPE_CHECKING:
    from penstock.cluster.local.local_plan import ClusterPlan
    from penstock.runtime.local_cluster.cluster import LocalCluster, Progress
    from penstock.runtime.local_cluster.directory import ClusterDirectory

app = typer.Typer(
    no_args_is_help=True, help="A cluster: start one on this machine, show it, stop nodes, add nodes."
)

NODES, FRONT_ENDS, ZONES = 3, 2, 3


@app.command("up")
@reported
def up(
    nodes: Annotated[
        int | None, typer.Option("--nodes", help=f"Number of nodes (default {NODES}).", show_default=False)
    ] = None,
    frontends: Annotated[
        int | None,
        typer.Option("--frontends", help=f"Number of front ends (default {FRONT_ENDS}).", show_default=False),
    ] = None,
    metadata: Annotated[
        int | None,
        typer.Option(
            "--metadata",
            help="How many metadata servers. 0: front ends read etcd directly.",
            show_default=False,
        ),
    ] = None,
    zones: Annotated[
        int | None,
        typer.Option("--zones", help=f"Number of zones for the nodes (default {ZONES}).", show_default=False),
    ] = None,
    etcd: Annotated[
        str | None,
        typer.Option(
            "--etcd",
            help="Use an existing etcd instead of starting one: etcd://HOST:PORT,…",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    data: ClusterData = DEFAULT_DIRECTORY,
    base_port: Annotated[
        int | None,
        typer.Option(
            "--base-port",
            help="The base of all ports (9320: SQS on 9324, native on 9326). 0: any free ports.",
            show_default=False,
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; `penstock cluster down` stops it.")
    ] = False,
    tls: Annotated[
        bool,
        typer.Option(
            "--tls",
            help="Use TLS between all processes, with certificates of a temporary authority.",
        ),
    ] = False,
    seal_users: Annotated[
        bool,
        typer.Option(
            "--seal-users",
            help="Once, for a cluster of a version without seals: confirm that you know its users.",
        ),
    ] = False,
    supervise: Annotated[
        bool, typer.Option("--supervise", help="Restart processes that end unexpectedly.")
    ] = False,
    json: Json = False,
) -> None:
    """Start a whole cluster on this machine: etcd, nodes, front ends and a load balancer, from one command."""
    if detach and supervise:
        raise CommandError(
            "--supervise needs a process that stays in the foreground; leave --detach out", USAGE
        )
    _interrupted_by_all_signals()
    with cluster_errors():
        from penstock.runtime.local_cluster.balancer import find_haproxy
        from penstock.runtime.local_cluster.cluster import LocalCluster
        from penstock.runtime.local_cluster.directory import ClusterDirectory
        from penstock.runtime.local_cluster.etcd_process import find_etcd

        directory = ClusterDirectory(Path(data))
        find_haproxy()
        known = directory.load()
        plan = (
            _new_plan(
                *(nodes, frontends, metadata, zones, etcd, base_port),
                tls=str(directory.certificates) if tls else None,
            )
            if known is None
            else _known_plan(known.plan, nodes, frontends, metadata, zones, etcd, base_port, tls=tls)
        )
        if plan.of_role("etcd"):
            find_etcd()
        else:
            _find_running_etcd(plan.etcd_url)
        with directory.starting():
            _save(directory, plan)
            cluster = LocalCluster(directory, _progress(json))
            _bring_up(cluster, first=known is None, seal_users=seal_users)
        _announce(cluster, detach=detach, json=json)
        if not detach:
            _stay(cluster, supervise=supervise, json=json)


def _find_running_etcd(url: str) -> None:
    """Nodes would wait for an etcd that is away; a person at a prompt wants to know now."""
    import asyncio

    from penstock.metadata.election import PREFIX
    from penstock.metadata.store.interface import StoreUnavailableError
    from penstock.runtime.cluster.manager import MANAGER_ELECTION
    from penstock.runtime.cluster.store_guard import why_unguarded

    try:
        with_store(url, lambda store: store.get(PREFIX + MANAGER_ELECTION))
        why = asyncio.run(why_unguarded(url, None))
        if why is not None:
            error_console().print(why, style="yellow", markup=False)
    except StoreUnavailableError as error:
        raise CommandError(
            f"{error}. Start it first; without --etcd the cluster starts its own etcd.", UNREACHABLE
        ) from None


def _interrupted_by_all_signals() -> None:
    """Started processes must be stopped also when another signal than Ctrl-C ends this command."""
    import signal

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def _new_plan(
    nodes: int | None,
    frontends: int | None,
    metadata: int | None,
    zones: int | None,
    etcd: str | None,
    base_port: int | None,
    *,
    tls: str | None,
) -> ClusterPlan:
    from penstock.cluster.local.local_plan import BASE_PORT, plan_cluster
    from penstock.metadata.store.etcd_settings import parse_etcd_url
    from penstock.runtime.local_cluster.ports import ports_of

    if etcd is not None:
        parse_etcd_url(etcd)
    base = BASE_PORT if base_port is None else base_port
    if base < 0:
        raise CommandError(f"--base-port {base} is not a port; use 1 or more, or 0 for free ports", USAGE)
    return plan_cluster(
        nodes=NODES if nodes is None else nodes,
        front_ends=FRONT_ENDS if frontends is None else frontends,
        metadata=metadata or 0,
        zones=ZONES if zones is None else zones,
        base_port=base,
        etcd_url=etcd,
        ports=ports_of(base),
        tls=tls,
    )


def _known_plan(
    plan: ClusterPlan,
    nodes: int | None,
    frontends: int | None,
    metadata: int | None,
    zones: int | None,
    etcd: str | None,
    base_port: int | None,
    *,
    tls: bool,
) -> ClusterPlan:
    """The cluster that was here before, with more processes where that is asked for."""
    import msgspec

    from penstock.cluster.local.local_plan import enlarged
    from penstock.runtime.local_cluster.ports import ports_of

    for flag, value, before in (
        ("--zones", zones, plan.zones),
        ("--etcd", etcd, plan.etcd_url),
        ("--base-port", base_port, plan.base_port),
    ):
        if value is not None and value != before:
            raise CommandError(
                f"this cluster was made with {flag} {before}, which stays; leave {flag} out, or begin another cluster in "
                "another directory with --data",
                USAGE,
            )
    if tls and plan.tls is None:
        raise CommandError(
            "this cluster was made without --tls, which stays; begin another cluster in another directory with --data",
            USAGE,
        )
    plan = msgspec.structs.replace(plan, passes_clients_on=True)
    ports = ports_of(plan.base_port)
    plan = enlarged(plan, "node", nodes, ports)
    plan = enlarged(plan, "frontend", frontends, ports)
    return enlarged(plan, "metadata", metadata, ports)


def _save(directory: ClusterDirectory, plan: ClusterPlan) -> None:
    import msgspec

    from penstock.runtime.local_cluster.directory import ClusterState

    known = directory.load()
    if known is not None and known.up:
        raise CommandError(
            f"a cluster runs in {directory.path} already ({', '.join(known.up)}); `penstock cluster status` shows it, "
            "`penstock cluster down` stops it"
        )
    directory.save(
        ClusterState(plan=plan)
        if known is None
        else msgspec.structs.replace(known, plan=plan, running={}, watcher=None)
    )


def _progress(json: bool) -> Progress:
    def progress(name: str, what: str) -> None:
        if not json:
            error_console().print(f"  {name:<12} {what}", style="dim", markup=False)

    return progress


def _bring_up(cluster: LocalCluster, *, first: bool, seal_users: bool) -> None:
    """If not all processes start, the started ones are stopped again; a cluster that never ran leaves no plan."""
    try:
        cluster.bring_up(seal_users=seal_users)
    except BaseException:
        cluster.bring_down()
        if first:
            cluster.directory.forget()
        raise


def _announce(cluster: LocalCluster, *, detach: bool, json: bool) -> None:
    from penstock.metadata.store.etcd_settings import without_password

    plan = cluster.plan
    if json:
        print_json(
            {
                "event": "ready",
                "sqs_url": plan.sqs_url,
                "url": plan.native_url,
                "page_url": plan.page_url,
                "etcd_url": plan.etcd_url,
                "data_directory": str(cluster.directory.path),
                "processes": {name: one.process for name, one in cluster.state.running.items()},
            }
        )
        return
    zones = {one.zone for one in plan.of_role("node")}
    servers = plan.of_role("metadata")
    print_facts(
        "The cluster is ready",
        {
            "sqs": f"{plan.sqs_url}  (any credentials until there are users)",
            "native": plan.native_url,
            "balancer": f"{plan.page_url}  (status of the front ends)",
            "nodes": f"{', '.join(one.name for one in plan.of_role('node'))} in {len(zones)} zones",
            "front ends": ", ".join(one.name for one in plan.of_role("frontend")),
            **({"metadata": ", ".join(one.name for one in servers)} if servers else {}),
            "etcd": without_password(plan.etcd_url.partition("?")[0]),
            **(
                {"tls": f"between all processes and with native clients, with certificates in {plan.tls}"}
                if plan.tls
                else {}
            ),
            "data": str(cluster.directory.path),
        },
    )
    print_hint("  Try: penstock queue create orders, penstock cluster status, penstock cluster kill node-1")
    if not detach:
        print_hint("  Ctrl-C stops all processes.")


def _stay(cluster: LocalCluster, *, supervise: bool, json: bool) -> None:
    from penstock.runtime.local_cluster.watching import Watcher

    def tell(sentence: str) -> None:
        if json:
            print_json({"event": "notice", "notice": sentence, "time": round(time.time(), 3)})
        else:
            error_console().print(f"{time.strftime('%H:%M:%S')} {sentence}", style="yellow", markup=False)

    if not Watcher(cluster, tell, supervise=supervise).run():
        if not json:
            print_line("Another process stopped the cluster.")
        return
    if not json:
        error_console().print("stopping; press Ctrl-C again to stop at once", style="dim")
    try:
        _say_stopped(cluster.bring_down(), json=json)
    except KeyboardInterrupt:
        cluster.kill_all()
        raise typer.Exit(FAILED) from None


@app.command("down")
@reported
def down(data: ClusterData = DEFAULT_DIRECTORY, json: Json = False) -> None:
    """Stop the local cluster, in order; its data stays, and `cluster up` finds it again."""
    with cluster_errors():
        cluster = local_cluster(data, _progress(json))
        if not cluster.state.up:
            cluster.directory.note_stopped(*cluster.state.running)
            if json:
                print_json({"event": "stopped", "forced": []})
            else:
                print_line("The cluster is not running.")
            return
        _say_stopped(cluster.bring_down(), json=json)


def _say_stopped(forced: list[str], *, json: bool) -> None:
    if json:
        print_json({"event": "stopped", "forced": forced})
        return
    print_line("The cluster is stopped; its data stays.")
    if forced:
        error_console().print(
            f"killed, because they did not stop in time: {', '.join(forced)}",
            style="yellow",
            markup=False,
        )
    sys.stdout.flush()


app.command("status")(status)
for name, command in cluster_processes.COMMANDS.items():
    app.command(name)(command)
app.command("elect")(elect)
app.command("seal")(seal)
