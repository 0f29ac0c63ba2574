"""The record of what came through the native protocol: one row a request, in the log before its answer leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.frontend.native.answers import OK_STATUS, messages_in, status_of
from penstock.frontend.native.rules import CONNECTED
from penstock.frontend.record_usage import CANCELLED, CANCELLED_STATUS, NOBODY, SUCCEEDED
from penstock.frontend.request_ids import RequestIds
from penstock.frontend.session import Session
from penstock.usage.collector import UsageCollector
from penstock.usage.event import UsageEvent
from penstock.wire import messages


class Asked(NamedTuple):
    """A request that is under way."""

    action: str
    queue: str
    """The queue's ARN, or empty."""
    bytes_in: int
    time_ms: int
    started_us: int
    subscription: int = 0
    """Of a subscription: its queue's id. Every delivery is a row, and nobody waits for one."""
    failures_only: bool = False
    """Whether there is a row only if it fails."""


_LOOKS = frozenset({"GetQueueAttributes", "ListGroups", "FindOffset", "LocateLog", "ReadLog", "CommitOffset"})
"""What whoever follows a log does over and over."""


class NativeRecord:
    """Writes the rows."""

    def __init__(
        self, usage: UsageCollector, request_ids: RequestIds, timer_us: Callable[[], int], own_queue: str
    ) -> None:
        """`own_queue`: the ARN of the record itself. Who reads it leaves no rows: following it would never end."""
        self._own_queue = own_queue
        self._usage = usage
        self._request_ids = request_ids
        self._timer_us = timer_us

    def asked(self, action: str, queue: str, bytes_in: int, now_ms: int, subscription: int = 0) -> Asked:
        """A request begins."""
        unseen = action == CONNECTED or (queue == self._own_queue and action in _LOOKS)
        return Asked(action, queue, bytes_in, now_ms, self._timer_us(), subscription, unseen)

    def answered(
        self,
        asked: Asked,
        session: Session | None,
        address: str,
        answer: messages.Answer,
        bytes_out: int,
        now_ms: int,
    ) -> None:
        """A request is about to be answered."""
        if isinstance(answer, messages.Failed):
            self._write(asked, session, address, 0, bytes_out, answer.code, status_of(answer.code), now_ms)
        elif not asked.failures_only:
            count = messages_in(answer)
            self._write(asked, session, address, count, bytes_out, SUCCEEDED, OK_STATUS, now_ms)

    def abandoned(self, asked: Asked, session: Session | None, address: str, now_ms: int) -> None:
        """The client went away before it was answered: what became of the request it cannot know."""
        if not asked.failures_only:
            self._write(asked, session, address, 0, 0, CANCELLED, CANCELLED_STATUS, now_ms)

    def _write(
        self,
        asked: Asked,
        session: Session | None,
        address: str,
        count: int,
        bytes_out: int,
        outcome: str,
        status: int,
        now_ms: int,
    ) -> None:
        delivered = asked.subscription and status == OK_STATUS
        self._usage.record(
            UsageEvent(
                now_ms if delivered else asked.time_ms,
                session.account if session is not None else "",
                session.user if session is not None else NOBODY,
                address,
                asked.action,
                asked.queue,
                count,
                0 if delivered else asked.bytes_in,
                bytes_out,
                outcome,
                status,
                0 if delivered else self._timer_us() - asked.started_us,
                self._request_ids.next(),
            )
        )
