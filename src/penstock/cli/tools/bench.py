"""`penstock bench`: measures this machine and Penstock on it."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.exits import CommandError, reported
from penstock.cli.parameters import Json


@reported
def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Run only this section; may be repeated. Sections: machine, throughput, single, end-to-end, memory, "
            "backlog, fifo, priority, sqs-throughput, sqs-single, sqs-long-poll, sqs-idle, log, order, "
            "cluster-throughput, cluster-single, cluster-failover, cluster-queues, spark-source, spark-jobs, "
            "spark-follow.",
            metavar="SECTION",
        ),
    ] = None,
    sqs: Annotated[
        bool, typer.Option("--sqs", help="Measure the SQS interface: the sections that begin with sqs.")
    ] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Measure reading a retained log that is on disk only.")
    ] = False,
    order: Annotated[
        bool, typer.Option("--order", help="Measure the cost of each kind of order, compared with none.")
    ] = False,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help="Measure a cluster: three nodes on this machine, three replicas; needs etcd and HAProxy.",
        ),
    ] = False,
    spark: Annotated[
        bool,
        typer.Option(
            "--spark", help="Measure the data pipeline; needs Java and `pip install penstock[spark]`."
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run shorter: a first impression, not a result.")
    ] = False,
    size: Annotated[
        str,
        typer.Option(
            "--size", help="Message sizes for the throughput sections, in bytes.", metavar="BYTES,…"
        ),
    ] = "100,1024",
    backlog: Annotated[
        str | None,
        typer.Option(
            "--backlog",
            help="Numbers of waiting messages to receive from. [default: 1k,100k,10m]",
            metavar="COUNT,…",
        ),
    ] = None,
    durability: Annotated[
        str, typer.Option("--durability", help="sync or os, as for `penstock serve`.", metavar="CHOICE")
    ] = "sync",
    data: Annotated[
        str | None, typer.Option("--data", help="The directory whose disk is measured.", metavar="DIR")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", help="Also write the results to this file, as JSON.", metavar="FILE"),
    ] = None,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Show where the server spends its time. Makes everything slower."),
    ] = False,
    json: Json = False,
) -> None:
    """Measure this machine's limits and Penstock's performance on it."""
    try:
        from benchmarks import command
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "benchmarks":
            raise
        raise CommandError(
            "the benchmarks are not part of the installed package: clone the repository and run `make bench` there"
        ) from error

    raise typer.Exit(
        command.run(
            only=only or [],
            sqs=sqs,
            log=log,
            order=order,
            cluster=cluster,
            spark=spark,
            quick=quick,
            data=data,
            output=output,
            json=json,
            size=size,
            durability=durability,
            backlogs=backlog,
            profile=profile,
        )
    )
