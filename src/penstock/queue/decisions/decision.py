"""A decision: the records that carry it out, and the reply to the requester."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from penstock.model.batch import Batch
from penstock.model.records import QueueRecord
from penstock.model.runs import Runs

Reply = TypeVar("Reply")


class PendingRecord(NamedTuple):
    """A record that is not written yet and, for `Sent`, its batch."""

    record: QueueRecord
    batch: Batch | None = None


class Decision(NamedTuple, Generic[Reply]):
    """Records to append and apply in order, and the reply to send when they are on disk."""

    records: Sequence[PendingRecord]
    reply: Reply


class Admitted(NamedTuple):
    """The result of a send: the sequence numbers in the order of the batch."""

    runs: Runs
    duplicates: list[int]
    sent_ms: int
    stamp_us: int = 0
    """The server's stamp, where it made one."""


class Granted(NamedTuple):
    """The result of a receive: a lease, and its runs in the order of delivery."""

    lease: int
    runs: Runs
    until_ms: int


class Outcome(NamedTuple):
    """What a settle request did to the messages that it named."""

    done: int
    gone: int
    stale: Runs
