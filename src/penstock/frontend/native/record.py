"""The record of what came through the native protocol: one row a request, in the log before its answer leaves."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.native.answers import OK_STATUS, messages_in, status_of
from penstock.frontend.native.rules import CONNECTED
from penstock.frontend.record_usage import CANCELLED, CANCELLED_STATUS, NOBODY, SUCCEEDED
from penstock.frontend.request_ids import RequestIds
from penstock.frontend.session import Session
from penstock.model.errors import ErrorCode
from penstock.usage.collector import UsageCollector
from penstock.usage.event import UsageEvent
from penstock.wire import messages

Asked = tuple[str, str, int, int, int, int, bool]
"""A request that is under way: its action, the ARN of its queue or nothing, its bytes, when it came, what the timer showed
then, its queue's id if it is a subscription (else 0), and whether there is a row only if it fails. A plain tuple: one is
made for every request."""

_LOOKS = frozenset(
    {
        *("GetQueueAttributes", "ListGroups", "FindOffset", "LocateLog", "ReadLog"),
        *("CommitOffset", "JoinGroup", "LeaveGroup"),
    }
)
"""What whoever follows a log does over and over."""


def subscription_of(asked: Asked) -> int:
    """The id of the queue that is subscribed to; 0: it is no subscription."""
    return asked[5]


def queue_of(asked: Asked) -> str:
    """The ARN of the queue that it is about, or nothing."""
    return asked[1]


def leaves_rows(asked: Asked) -> bool:
    """Whether there is a row also where it goes well."""
    return not asked[6]


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
        return action, queue, bytes_in, now_ms, self._timer_us(), subscription, unseen

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
        _, _, bytes_in, time_ms, started_us, subscription, failures_only = asked
        latency_us = self._timer_us() - started_us
        if isinstance(answer, messages.Failed):
            if failures_only and answer.code == ErrorCode.QUEUE_NOT_FOUND:
                return  # the record is not there before its first row; to look for it makes none
            count, outcome, status = 0, answer.code, status_of(answer.code)
        elif failures_only:
            return
        else:
            count, outcome, status = messages_in(answer), SUCCEEDED, OK_STATUS
            if subscription:  # a delivery, which nobody has asked for just now
                time_ms, bytes_in, latency_us = now_ms, 0, 0
        self._write(asked, time_ms, session, address, count, bytes_in, bytes_out, outcome, status, latency_us)

    def abandoned(self, asked: Asked, session: Session | None, address: str) -> None:
        """The client went away before it was answered: what became of the request it cannot know."""
        _, _, bytes_in, time_ms, started_us, subscription, failures_only = asked
        if not failures_only and not subscription:
            latency_us = self._timer_us() - started_us
            self._write(
                asked, time_ms, session, address, 0, bytes_in, 0, CANCELLED, CANCELLED_STATUS, latency_us
            )

    def _write(
        self,
        asked: Asked,
        time_ms: int,
        session: Session | None,
        address: str,
        count: int,
        bytes_in: int,
        bytes_out: int,
        outcome: str,
        status: int,
        latency_us: int,
    ) -> None:
        self._usage.record(
            UsageEvent(
                time_ms,
                session.account if session is not None else "",
                session.user if session is not None else NOBODY,
                address,
                asked[0],
                asked[1],
                count,
                bytes_in,
                bytes_out,
                outcome,
                status,
                latency_us,
                self._request_ids.next(),
            )
        )
