"""What `create_queue` and `alter_queue` take. Made from the table of settings by `make settings`: do not edit."""

from __future__ import annotations

from typing import TypedDict

from penstock.client.duration import Duration
from penstock.model.settings import Consumption, Ordering, Overflow, Replication, Stamps, WhenUncertain


class QueueOptions(TypedDict, total=False):
    """The settings of a queue; None lifts a limit or removes a setting."""

    ordering: Ordering
    """The order of delivery: none, or by group in the order of the server's numbers (`fifo`), of causes
    (`causal`) or of time (`clock`). Default: best-effort. Fixed when the queue is created."""
    stamps: Stamps
    """Whose stamps order a `clock` queue. A `causal` queue goes by its producers' stamps in any case.
    Default: server. Fixed when the queue is created."""
    window: Duration
    """How long messages that are ordered by their producers' stamps wait for older ones. Default: 100ms."""
    max_uncertainty: Duration
    """How uncertain the time of a `clock` queue may be. Default: 100ms."""
    when_uncertain: WhenUncertain
    """What happens to sends to a `clock` queue while the time is more uncertain than that. Default:
    refuse."""
    consumption: Consumption
    """Whether consumers receive and delete messages (`queue`), readers find them in a retained log (`log`),
    or both. Default: queue. Fixed when the queue is created."""
    retain_bytes: int | None
    """How many bytes of its newest messages a log keeps. Messages that are older than the retention go in any
    case. Default: none."""
    idle_expiry: Duration | None
    """A queue that was not used for this long is deleted, with its messages. To send, receive, read, settle
    and wait is use; to look at it is not. Default: none."""
    partitions: int
    """How many partitions the queue has in a cluster. Default: 1. Fixed when the queue is created."""
    replicas: int
    """How many nodes of a cluster hold each partition. A cluster's front ends have their own default (3).
    Default: 1."""
    replication: Replication
    """A send is acknowledged when all replicas in sync have it on disk (`sync`), or when the primary has it
    (`async`). Default: sync."""
    min_in_sync: int | None
    """With fewer replicas in sync sends are refused. Default: none (a majority of the replicas)."""
    max_messages: int | None
    """How many messages the queue may hold. Default: none."""
    max_bytes: int | None
    """How many bytes the queue may hold. Default: none."""
    max_message_bytes: int
    """The largest message that the queue takes. Default: 1MiB."""
    overflow: Overflow
    """What a full queue does with a send: refuse it, or make room by dropping or dead-lettering the oldest
    messages. Default: reject."""
    visibility_timeout: Duration
    """How long a received message is hidden from other consumers. Default: 30s."""
    retention: Duration
    """How long messages are kept. Default: 4d."""
    delay: Duration
    """How long messages wait before they can be received; at most the retention. Default: 0s."""
    default_ttl: Duration | None
    """How long a message without its own time to live is worth delivering. Default: none."""
    deduplication_window: Duration
    """How long a deduplication id is remembered. Default: 5m."""
    max_receives: int | None
    """A message that was received this often and not deleted goes to the dead-letter queue. Default: none."""
    dead_letter_queue: str | None
    """The queue that dead messages go to. It is made if it is missing. Default: none."""
    lifecycle: bool
    """Whether what becomes of the queue's messages is written to the log `penstock.lifecycle`. Default:
    off."""
