"""What a load process is asked to do and what it answers: one JSON line each way."""

from __future__ import annotations

import msgspec

from benchmarks.figures import Latency
from benchmarks.sqs.tasks import SqsTask
from penstock.model.errors import ErrorCode, PenstockError


class Publish(msgspec.Struct, frozen=True, kw_only=True, tag="publish"):
    """Sends messages in batches, several of them on their way at once, over one connection."""

    url: str
    queue: str
    messages: int
    size_bytes: int
    batch_messages: int
    in_flight: int
    groups: int = 0
    """0: no groups; else messages take turns over so many."""


class Receive(msgspec.Struct, frozen=True, kw_only=True, tag="receive"):
    """Takes messages from a push subscription and deletes each delivery as one range."""

    url: str
    queue: str
    messages: int
    batch_messages: int
    credit: int


class SendSingly(msgspec.Struct, frozen=True, kw_only=True, tag="send-singly"):
    """Sends one message, waits until it is acknowledged, sends the next."""

    url: str
    queue: str
    messages: int
    size_bytes: int
    groups: int = 0
    """0: no groups; else messages take turns over so many."""


class SendPaced(msgspec.Struct, frozen=True, kw_only=True, tag="send-paced"):
    """Sends messages that carry their time of sending, at a fixed rate, whatever becomes of those before."""

    url: str
    queue: str
    messages: int
    size_bytes: int
    rate: int
    groups: int = 0
    """0: no groups; else messages take turns over so many."""


class Watch(msgspec.Struct, frozen=True, kw_only=True, tag="watch"):
    """Receives what `SendPaced` sends and notes how old each message is when the consumer has it."""

    url: str
    queue: str
    messages: int
    quiet_seconds: float | None = None
    """Ends also when nothing has come for so long; None: waits for all of them."""


class ReceiveRounds(msgspec.Struct, frozen=True, kw_only=True, tag="receive-rounds"):
    """Sends a few messages, not timed, then receives and deletes as many, timed; so the backlog stays as it is."""

    url: str
    queue: str
    rounds: int
    messages: int
    size_bytes: int
    batch_messages: int


class ReceiveGroup(msgspec.Struct, frozen=True, kw_only=True, tag="receive-group"):
    """Receives from several queues by weight and deletes what came, several requests at once."""

    url: str
    weights: dict[str, int]
    messages: int
    batch_messages: int
    in_flight: int


class ReadLog(msgspec.Struct, frozen=True, kw_only=True, tag="read-log"):
    """Reads a retained log from its beginning, slice by slice."""

    url: str
    queue: str
    messages: int
    bodies: bool = False
    """Whether every body is cut out of its slice."""
    direct: bool = False
    """Whether it is read from the nodes of a cluster themselves."""


Task = ReceiveGroup | Publish | Receive | SendSingly | SendPaced | Watch | ReceiveRounds | ReadLog | SqsTask


class Outcome(msgspec.Struct, frozen=True, kw_only=True, tag="outcome"):
    """What was done. Times are of the machine's monotonic clock, the same for all its processes."""

    messages: int
    started_ns: int
    ended_ns: int
    cpu_seconds: float
    timed_seconds: float = 0.0
    """For tasks of which only a part is timed."""
    latency: Latency | None = None
    served: dict[str, int] = {}
    """For tasks over several queues: how many messages each gave."""
    longest_gap: int = 0
    """The most messages of others between two of the queue with the lowest weight."""

    @property
    def measured(self) -> Latency:
        """The latency of a task that measures one; raises `PenstockError` where the process has not sent it."""
        if self.latency is None:
            raise PenstockError(ErrorCode.INTERNAL, "a process of the load has measured no latency")
        return self.latency

    @property
    def seconds(self) -> float:
        """From the first action to the last answer."""
        return (self.ended_ns - self.started_ns) / 1e9


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The process stands by, connected where the task needs it to be before others start."""


class TaskFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The task failed."""

    reason: str


Answer = Outcome | Ready | TaskFailed
