"""The usage record of the native protocol: one row for each request, in the log before its answer leaves."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.native.answers import OK_STATUS, messages_in, status_of
from penstock.frontend.native.rules import CONNECTED
from penstock.frontend.session import Session
from penstock.frontend.usage.record_usage import CANCELLED, CANCELLED_STATUS, NOBODY, SUCCEEDED, RequestIds
from penstock.model.errors import ErrorCode
from penstock.usage.collector import UsageCollector
from penstock.usage.event import Row, UsageEvent, usage_row
from penstock.wire import messages
from penstock.wire.frames import Frame

Asked = tuple[str, str, int, int, int, int, bool]
"""A request in progress: its action, the ARN of its queue or nothing, its bytes, its time, the timer at that time, its
queue's id if it is a subscription (else 0), and whether it gets a row only if it fails. A plain tuple, because one is made
for every request.
"""

_LOOKS = frozenset(
    {
        *("GetQueueAttributes", "ListGroups", "FindOffset", "LocateLog", "ReadLog"),
        *("CommitOffset", "JoinGroup", "LeaveGroup"),
    }
)
"""Requests that a follower of a log repeats all the time."""


def subscription_of(asked: Asked) -> int:
    """The id of the queue that is subscribed to; 0: it is no subscription."""
    return asked[5]


def queue_of(asked: Asked) -> str:
    """The ARN of the queue that it is about, or nothing."""
    return asked[1]


def leaves_rows(asked: Asked) -> bool:
    """Whether there is a row also where it goes well."""
    return not asked[6]


Who = tuple[str, str, str]
"""Account, user and address, as they are in rows."""


def who_is(session: Session | None, address: str) -> Who:
    """A client's identity in rows; without a session it is unknown."""
    return ("", NOBODY, address) if session is None else (session.account, session.user, address)


class NativeRecord:
    """Writes the rows."""

    def __init__(
        self, usage: UsageCollector, request_ids: RequestIds, timer_us: Callable[[], int], own_queue: str
    ) -> None:
        """`own_queue`: the ARN of the usage log itself. Reading it leaves no rows, because following it would never end."""
        self._own_queue = own_queue
        self._usage = usage
        self._next_id = request_ids.next
        self.timer_us = timer_us

    def asked(
        self, action: str, queue: str, frame: Frame, now_ms: int, timer_us: int, subscription: int = 0
    ) -> Asked:
        """A request begins."""
        _, head, body, _ = frame
        unseen = action == CONNECTED or (queue == self._own_queue and action in _LOOKS)
        return action, queue, len(head) + len(body), now_ms, timer_us, subscription, unseen

    def row(
        self, asked: Asked, who: Who, answer: messages.Answer, bytes_out: int, now_ms: int, timer_us: int
    ) -> Row | None:
        """The row of a request that is about to be answered; None: there is none."""
        action, queue, _, _, _, subscription, failures_only = asked
        if isinstance(answer, messages.Failed):
            if failures_only and answer.code == ErrorCode.QUEUE_NOT_FOUND:
                return None  # the record is not there before its first row; to look for it makes none
            return self._row(asked, who, 0, bytes_out, answer.code, status_of(answer.code), timer_us)
        if failures_only:
            return None
        if subscription:  # a delivery, which answers no single request
            asked = (action, queue, 0, now_ms, timer_us, subscription, failures_only)
        return self._row(asked, who, messages_in(answer), bytes_out, SUCCEEDED, OK_STATUS, timer_us)

    def _row(
        self, asked: Asked, who: Who, count: int, bytes_out: int, outcome: str, status: int, timer_us: int
    ) -> Row:
        action, queue, bytes_in, time_ms, started_us, _, _ = asked
        account, user, address = who
        return usage_row(
            UsageEvent(
                time_ms=time_ms,
                account=account,
                user=user,
                address=address,
                action=action,
                queue=queue,
                messages=count,
                bytes_in=bytes_in,
                bytes_out=bytes_out,
                outcome=outcome,
                status=status,
                latency_us=timer_us - started_us,
                request_id=self._next_id(),
            )
        )

    def write(self, rows: list[Row]) -> None:
        """Keeps rows of requests that are answered together; when it returns, the answers may leave."""
        self._usage.record_all(rows)

    def answered(self, asked: Asked, who: Who, answer: messages.Answer, bytes_out: int, now_ms: int) -> None:
        """A single request is about to be answered."""
        row = self.row(asked, who, answer, bytes_out, now_ms, self.timer_us())
        if row is not None:
            self.write([row])

    def refused(self, asked: Asked, who: Who, failed: messages.Failed, now_ms: int) -> None:
        """A client was refused; many such greetings are summed."""
        row = self.row(asked, who, failed, 0, now_ms, self.timer_us())
        if row is not None:
            self._usage.record_stranger(row)

    def abandoned(self, asked: Asked, who: Who) -> None:
        """The client left before the answer: it cannot know the outcome of its request."""
        *_, subscription, failures_only = asked
        if not (failures_only or subscription):
            self.write([self._row(asked, who, 0, 0, CANCELLED, CANCELLED_STATUS, self.timer_us())])
