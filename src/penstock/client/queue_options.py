"""What `create_queue` and `alter_queue` take. Made from the table of settings by `make settings`: do not edit."""

from __future__ import annotations

from typing import TypedDict

from penstock.client.duration import Duration
from penstock.model.settings import Consumption, Ordering, Overflow, Replication, Stamps, WhenUncertain


class QueueOptions(TypedDict, total=False):
    """The settings of a queue; None lifts a limit or removes a setting."""

    ordering: Ordering
    """The order of delivery within a group: none (`best-effort`), by the server's numbers (`fifo`), by each
    producer's stamps (`causal`), or by time (`clock`). Default: best-effort. Fixed when the queue is
    created."""
    stamps: Stamps
    """The source of the timestamps that order a `clock` queue. A `causal` queue always uses its producers'
    stamps. Default: server. Fixed when the queue is created."""
    window: Duration
    """How long the queue holds messages back to sort them by their producers' stamps. Default: 100ms."""
    max_uncertainty: Duration
    """The largest uncertainty of the server's time at which a `clock` queue accepts sends. Default: 100ms."""
    when_uncertain: WhenUncertain
    """What happens to a send to a `clock` queue while the server's time is too uncertain: it is refused, or
    held until the time is certain enough. Default: refuse."""
    consumption: Consumption
    """How messages are consumed: consumers receive and delete them (`queue`), readers read a retained log
    (`log`), or `both`. Default: queue. Fixed when the queue is created."""
    retain_bytes: int | None
    """The largest size of a retained log; the oldest messages are removed first. Messages older than the
    retention are always removed. Default: none."""
    idle_expiry: Duration | None
    """Time without use after which the queue is deleted, with its messages. Sending, receiving, reading,
    settling and waiting count as use; showing the queue does not. Default: none."""
    partitions: int
    """The number of partitions of the queue in a cluster. Default: 1. Fixed when the queue is created."""
    replicas: int
    """The number of nodes of a cluster that store each partition. The front ends of a cluster have their own
    default (3). Default: 1."""
    replication: Replication
    """When a send is acknowledged: when all replicas in sync have it on disk (`sync`), or when the primary
    has it on disk (`async`). Default: sync."""
    min_in_sync: int | None
    """The least number of replicas in sync at which sends are accepted. Default: none (a majority of the
    replicas)."""
    max_messages: int | None
    """The largest number of messages in the queue. Default: none."""
    max_bytes: int | None
    """The largest size of all messages in the queue. Default: none."""
    max_groups: int | None
    """The largest number of groups that have messages in the queue at the same time. To make room for another
    group, the overflow policy drops or dead-letters all messages of a group. Default: none."""
    max_message_bytes: int
    """The largest size of a message. Default: 1MiB."""
    overflow: Overflow
    """What a full queue does with a send: refuse it, or drop or dead-letter the oldest messages to make room.
    Default: reject."""
    visibility_timeout: Duration
    """How long a received message is hidden from other consumers. Default: 30s."""
    retention: Duration
    """How long messages are kept before they expire. Default: 4d."""
    delay: Duration
    """How long new messages wait before they can be received; at most the retention. Default: 0s."""
    default_ttl: Duration | None
    """The time to live of messages that have none of their own. Default: none."""
    deduplication_window: Duration
    """How long a deduplication id is remembered. Default: 5m."""
    max_receives: int | None
    """The number of receives after which an undeleted message moves to the dead-letter queue. Default:
    none."""
    dead_letter_queue: str | None
    """The dead-letter queue. It is created if it does not exist. Default: none."""
    lifecycle: bool
    """Whether every change of the queue's messages is written to the log `penstock.lifecycle`. Default:
    off."""
