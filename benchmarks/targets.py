"""What the figures are held against: one row a target, with the figure that answers it."""

from __future__ import annotations

from typing import Literal

import msgspec

from benchmarks.figures import Figure


class Target(msgspec.Struct, frozen=True):
    """A bound on one figure."""

    comparison: Literal[">=", "<="]
    bound: float

    def met(self, value: float) -> bool:
        """Whether the value keeps to the bound."""
        return value >= self.bound if self.comparison == ">=" else value <= self.bound


def _at_least(bound: float) -> Target:
    return Target(">=", bound)


def _at_most(bound: float) -> Target:
    return Target("<=", bound)


SINGLE_SEND_RATIO = 1.3
"""A lone send takes at most this many times the disk's and the network's own time."""
SQS_SINGLE_SEND_RATIO = 1.6
"""The same for a signed SendMessage."""
BACKLOG_MESSAGES = 10_000_000
"""The backlog that the receive rate may not suffer from."""

TARGETS: dict[str, Target] = {
    "publish.100.rate": _at_least(1_000_000),
    "receive.100.rate": _at_least(600_000),
    "publish.1024.rate": _at_least(180_000),
    "receive.1024.rate": _at_least(210_000),
    "both.1024.rate": _at_least(100_000),
    "publish.1024.server-cpu": _at_most(5.0),
    "receive.1024.server-cpu": _at_most(4.0),
    "single.ratio": _at_most(SINGLE_SEND_RATIO),
    "memory.engine": _at_most(16.0),
    "memory.resident": _at_most(40.0),
    "backlog.ratio": _at_least(0.9),
    "fifo.publish.rate": _at_least(100_000),
    "fifo.receive.rate": _at_least(100_000),
    "log.100.rate": _at_least(1_500_000),
    "log.1024.rate": _at_least(300_000),
    "sqs.send.rate": _at_least(15_000),
    "sqs.send.server-cpu": _at_most(60.0),
    "sqs.send-batch.rate": _at_least(60_000),
    "sqs.send-batch.requests": _at_least(6_000),
    "sqs.receive.rate": _at_least(50_000),
    "sqs.single.ratio": _at_most(SQS_SINGLE_SEND_RATIO),
    "sqs.long-poll.p99": _at_most(2_000),
    "sqs.idle.connections": _at_least(10_000),
    "sqs.idle.polls": _at_least(5_000),
    "cluster.publish.rate": _at_least(84_000),
    "cluster.publish.server-cpu": _at_most(20.0),
    "cluster.receive.rate": _at_least(63_000),
    "cluster.single.p50": _at_most(700),
    "cluster.failover.p99": _at_most(3.0),
    "cluster.move.worst": _at_most(200),
    "cluster.create.rate": _at_least(100),
    "cluster.idle.cpu": _at_most(5.0),
    "spark.read.1024.rate": _at_least(200_000),
    "spark.read.usage.rate": _at_least(800_000),
    "spark.follow.latency.p50": _at_most(2.0),
    "spark.follow.cost": _at_most(5.0),
}


def target_of(figure: Figure) -> Target | None:
    """The target that the figure answers, if there is one."""
    return TARGETS.get(figure.name)
