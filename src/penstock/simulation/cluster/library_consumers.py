"""The part of a run with consumers of the client library: front ends behind a balancer, and a queue with a permanent
subscription.

That queue must drain through the subscription alone after all faults have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from penstock.cluster.layout.entries import PartitionEntry
from penstock.simulation.cluster.front_ends import FrontEnds
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.router import ClusterStage, RoutingClient
from penstock.simulation.cluster.scenario import PUSHED
from penstock.simulation.network import Network
from penstock.simulation.workload.library_consumer import LibraryConsumer


class LibraryConsumers:
    """All of them."""

    def __init__(self, stage: ClusterStage, consumers: int, random: Random, counts: Counter[str]) -> None:
        self._stage = stage
        self._random = random
        self._counts = counts
        self._wanted = consumers
        self._consumers: list[LibraryConsumer] = []

    def start(self) -> None:
        """They begin."""
        for number in range(self._wanted):
            name = f"library-{number}"
            front_ends = self._front_ends(name)
            consumer = LibraryConsumer(
                self._stage,
                name,
                Network(self._stage.schedule, self._random, front_ends),
                self._random,
                front_ends.settled_again.__contains__,
                self._counts,
                steady=PUSHED if number == 0 else None,
            )
            self._consumers.append(consumer)
            consumer.start(consumer.run())

    def _front_ends(self, name: str) -> FrontEnds:
        stage = self._stage
        fabric = stage.fabric

        def start() -> RoutingClient:
            return RoutingClient(name, fabric.clients, fabric, stage.metadata, self._random, stage.trace)

        fabric.client_names.append(name)
        processes = self._random.randint(1, 3)
        return FrontEnds(
            start, processes, stage.schedule, self._random, lambda: fabric.calm or stage.stopping
        )

    @property
    def tasks(self) -> int:
        """How much of what is under way is theirs."""
        return sum(consumer.tasks for consumer in self._consumers)

    def is_drained(
        self, entries: Callable[[], Mapping[int, PartitionEntry]], machines: Mapping[str, ClusterMachine]
    ) -> bool:
        """Whether nothing is left in the queue of the steady one."""
        for entry in entries().values():
            node = machines[entry.primary or ""].replicated if entry.queue == PUSHED else None
            partition = node._parts.catalogue.partitions.get(entry.partition) if node is not None else None
            if partition is not None and partition.table.messages:
                return False
        return True

    def end(self) -> None:
        """Those that are steady end too."""
        for consumer in self._consumers:
            consumer.over = True
