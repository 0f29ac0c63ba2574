"""`penstock cluster elect`: an operator permits the election of a replica outside the in-sync set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.cluster.target import (
    DEFAULT_DIRECTORY,
    ClusterData,
    EtcdUrl,
    cluster_errors,
    etcd_of,
    with_store,
)
from penstock.cli.confirmation import confirm_loss
from penstock.cli.exits import NOT_FOUND, REFUSED, USAGE, CommandError, reported
from penstock.cli.output import print_json, print_line
from penstock.cli.parameters import Json, QueueName, Yes

if TYPE_CHECKING:
    from penstock.cluster.layout.entries import PartitionEntry
    from penstock.cluster.layout.view import ClusterView
    from penstock.metadata.store.interface import MetadataStore


@reported
def elect(
    name: QueueName,
    partition: Annotated[int, typer.Option("--partition", help="The number of the partition.", min=0)] = 0,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean", help="Elect a replica that may lack messages. The messages that it lacks are lost."
        ),
    ] = False,
    data: ClusterData = DEFAULT_DIRECTORY,
    etcd: EtcdUrl = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Elect a primary for a partition whose replicas in sync are all lost."""
    from penstock.cli.cluster.processes import read_view

    with cluster_errors():
        url = etcd_of(data, etcd)
        entry = _stuck(with_store(url, read_view), name, partition)
        if not unclean:
            raise CommandError(
                f"partition {partition} of {name} has no primary: {entry.reason}. With --unclean another replica is elected, "
                "and the messages that it lacks are lost",
                USAGE,
            )
        if not yes:
            confirm_loss(
                f"Elect one of {', '.join(entry.replicas)} as the primary of partition {partition} of {name}, and lose the messages that it lacks?"
            )
        with_store(url, lambda store: _allow(store, entry))
    if json:
        print_json({"event": "allowed", "queue": name, "partition": partition, "epoch": entry.epoch})
    else:
        print_line(
            f"The living replica with the longest log becomes the primary of partition {partition} of {name}."
        )


def _stuck(view: ClusterView, name: str, ordinal: int) -> PartitionEntry:
    """The partition; raises unless there is one without a possible primary."""
    from penstock.cluster.manager.failover import leaderless

    queue = view.queues.get(name)
    if queue is None or ordinal >= len(queue.entry.partitions):
        raise CommandError(f"there is no partition {ordinal} of a queue {name} in this cluster", NOT_FOUND)
    seen = view.partitions.get(queue.entry.partitions[ordinal])
    if seen is None or not leaderless(view, seen.entry):
        raise CommandError(f"partition {ordinal} of {name} has a primary; no election is needed", REFUSED)
    return seen.entry


async def _allow(store: MetadataStore, entry: PartitionEntry) -> None:
    from penstock.cluster.layout.elections import unclean_allowed
    from penstock.cluster.layout.entries import encode, unclean_key

    await store.put(unclean_key(entry.partition), encode(unclean_allowed(entry)))
