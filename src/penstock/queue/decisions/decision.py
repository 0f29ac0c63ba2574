"""A decision: the records that make it so, and what to tell whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from penstock.model.batch import Batch
from penstock.model.records import QueueRecord
from penstock.model.runs import Runs

Reply = TypeVar("Reply")


class PendingRecord(NamedTuple):
    """A record and, for `Sent`, the batch that goes with it."""

    record: QueueRecord
    batch: Batch | None = None


class Decision(NamedTuple, Generic[Reply]):
    """Append and apply the records, in order; answer with the reply once they are on disk."""

    records: Sequence[PendingRecord]
    reply: Reply


class Admitted(NamedTuple):
    """How a batch was taken in: its sequence numbers in the order of the batch."""

    runs: Runs
    duplicates: list[int]
    sent_ms: int
    stamp_us: int = 0
    """The server's stamp, where it made one."""


class Granted(NamedTuple):
    """A lease, its runs in the order to deliver them."""

    lease: int
    runs: Runs
    until_ms: int


class Outcome(NamedTuple):
    """What a settle request did to the messages it named."""

    done: int
    gone: int
    stale: Runs
