"""Step 8, record usage: the fields of a row, and the answers that wait for it.

The rows of requests that are answered together are recorded together, before any of the answers leaves. So every answer
that a client has is recorded, even if this process is killed in the next moment. Answers wait here until the rows of all
of them are written, which takes no longer than the turn that made them. Two dozen rows together cost 0.7 µs a row, one by
one 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

from penstock.frontend.telling import tell
from penstock.sqs.actions import ACTIONS
from penstock.sqs.call import Call
from penstock.sqs.protocols.http import HttpRequest, HttpResponse
from penstock.sqs.protocols.json_protocol import TARGET_PREFIX
from penstock.sqs.protocols.protocol import Protocol
from penstock.sqs.shapes.batches import (
    ChangeMessageVisibilityBatchResult,
    DeleteMessageBatchResult,
    SendMessageBatchResult,
)
from penstock.sqs.shapes.messages import (
    ChangeMessageVisibilityRequest,
    DeleteMessageRequest,
    ReceiveMessageResult,
    SendMessageResult,
)
from penstock.usage.collector import BLOCK_EVENTS, UsageCollector
from penstock.usage.event import Row

NOBODY = ""
"""The user of a request from an unknown caller."""
SUCCEEDED = "ok"
CANCELLED = "cancelled"
"""The client went away while it waited for messages; there are none that it took along."""
CANCELLED_STATUS = 499
"""The status that proxies log if the client did not wait for one."""

_ACTION = re.compile(r"(?:^|&)Action=([A-Za-z]{1,64})(?:&|$)")
_FORM_BYTES = 4096


def messages_in(call: Call, result: Any) -> int:
    """How many messages a call that succeeded sent, received, deleted or changed."""
    match result:
        case SendMessageResult():  # before the rest, because most requests end here
            return 1
        case None:
            return int(isinstance(call.parameters, DeleteMessageRequest | ChangeMessageVisibilityRequest))
        case ReceiveMessageResult():
            return len(result.messages)
        case SendMessageBatchResult() | DeleteMessageBatchResult() | ChangeMessageVisibilityBatchResult():
            return len(result.successful)
        case _:
            return 0


def asked_action(request: HttpRequest, protocol: Protocol) -> str:
    """The action that a request names which is no call for another reason; empty where there is no such action."""
    if protocol is Protocol.JSON:
        name = request.headers.get("x-amz-target", "").removeprefix(TARGET_PREFIX)
    else:
        form = request.body[:_FORM_BYTES].decode("latin-1")
        found = _ACTION.search(request.query[:_FORM_BYTES]) or _ACTION.search(form)
        name = found[1] if found is not None else ""
    return name if name in ACTIONS else ""


_Answer = tuple[Callable[[HttpResponse], None], HttpResponse]
"""How to reply, and with what. A plain tuple: one is made for every request."""


class RecordedAnswers:
    """The answers of this turn, and their rows."""

    def __init__(self, usage: UsageCollector, later: Callable[[Callable[[], None]], object]) -> None:
        self._usage = usage
        self._later = later
        """Calls something once everything that has arrived by now is handled."""
        self._rows: list[Row] = []
        self._answers: list[_Answer] = []

    def leave(self, row: Row, reply: Callable[[HttpResponse], None], response: HttpResponse) -> None:
        """Replies with the response once the row is on record."""
        rows = self._rows
        rows.append(row)
        self._answers.append((reply, response))
        if len(rows) == 1:
            self._later(self._let_go)
        elif len(rows) == BLOCK_EVENTS:
            self._let_go()

    def leave_stranger(self, row: Row, reply: Callable[[HttpResponse], None], response: HttpResponse) -> None:
        """The same for an unknown caller; many such requests are summed."""
        self._usage.record_stranger(row)
        tell(reply, response)

    def note(self, row: Row) -> None:
        """Records a request whose client no longer waits."""
        self._usage.record_all([row])

    def _let_go(self) -> None:
        if not self._rows:  # they were many, and have left before
            return
        rows, self._rows = self._rows, []
        answers, self._answers = self._answers, []
        self._usage.record_all(rows)
        for reply, response in answers:
            tell(reply, response)


class RequestIds:
    """A random prefix and a counter."""

    def __init__(self, token: bytes) -> None:
        start = token[:10].ljust(10, b"\0").hex()
        self._prefix = f"{start[:8]}-{start[8:12]}-4{start[12:15]}-a{start[15:18]}-"
        self._numbers = count(1)

    def next(self) -> str:
        """The next id."""
        return self._prefix + next(self._numbers).to_bytes(6, "big").hex()  # `012x` takes twice as long
