"""Single messages for one queue that arrive in one turn, sent as one batch: the engine's work is for the batch.

Only messages of which the order among each other does not matter to anybody come here: each is a request of its
own, and none of their senders knows of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from penstock.frontend.engine import EngineLink
from penstock.frontend.steps import Reply
from penstock.model.batch import encode_one, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import MEBIBYTE
from penstock.model.runs import count_of
from penstock.wire.messages import Send, SendResult

log = logging.getLogger(__name__)

MESSAGES = 1_000
BYTES = 4 * MEBIBYTE
"""So much is sent at once; more begins the next batch."""

Stored = Callable[[int | PenstockError], None]

_DEFECT = "an answer could not be used: this is a defect of Penstock; please report it"
_ONE_ALONE = (ErrorCode.QUEUE_FULL, ErrorCode.MESSAGE_TOO_LARGE)
"""What one message of a batch may be to blame for: then each is tried alone. Nothing was stored, so nothing doubles."""


class _Message(msgspec.Struct, frozen=True):
    body: bytes
    attributes: bytes
    done: Stored


class GatheredSends:
    """Messages of this turn, by queue."""

    def __init__(self, engine: EngineLink, later: Callable[[Callable[[], None]], object]) -> None:
        self._engine = engine
        self._later = later
        """Calls something once everything that has arrived by now is handled."""
        self._waiting: dict[int, list[_Message]] = {}
        self._bytes = 0

    def send(self, queue_id: int, body: bytes, attributes: bytes, done: Stored) -> None:
        """Sends a message with others; `done` gets its sequence number, or why there is none."""
        waiting = self._waiting
        is_first = not waiting
        messages = waiting.get(queue_id)
        if messages is None:
            messages = waiting[queue_id] = []
        messages.append(_Message(body, attributes, done))
        self._bytes += len(body) + len(attributes)
        if self._bytes >= BYTES or len(messages) >= MESSAGES:
            self._send_all()
        elif is_first:
            self._later(self._send_all)

    def _send_all(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._bytes = 0
        for queue_id, messages in waiting.items():
            self._send(queue_id, messages)

    def _send(self, queue_id: int, messages: Sequence[_Message]) -> None:
        self._engine.ask(
            Send(queue_id), _encoded(messages), partial(self._answered, queue_id, messages), len(messages)
        )

    def _answered(self, queue_id: int, messages: Sequence[_Message], outcome: Reply | PenstockError) -> None:
        if isinstance(outcome, PenstockError):
            if outcome.code in _ONE_ALONE and len(messages) > 1:
                for message in messages:
                    self._send(queue_id, [message])
                return
            _refuse(messages, outcome)
            return
        answer = outcome.answer
        assert isinstance(answer, SendResult)
        runs = answer.runs
        numbers = runs[0][1] if len(runs) == 1 else count_of(runs)
        if numbers != len(messages):  # then nobody knows whose is whose, and a wrong one is worse than none
            found = f"the engine gave {numbers} numbers to {len(messages)} messages"
            log.error("%s: this is a defect of Penstock; please report it", found)
            _refuse(messages, PenstockError(ErrorCode.INTERNAL, found))
            return
        untold = iter(messages)
        for first, count in runs:  # 1.5 µs less for one message than over all numbers chained
            for sequence, message in zip(range(first, first + count), untold, strict=False):
                try:
                    message.done(sequence)
                except Exception:
                    log.exception(_DEFECT)


def _refuse(messages: Sequence[_Message], error: PenstockError) -> None:
    for message in messages:
        try:
            message.done(error)
        except Exception:
            log.exception(_DEFECT)


def _encoded(messages: Sequence[_Message]) -> bytes:
    if len(messages) == 1 and not messages[0].attributes:
        return encode_one(messages[0].body)
    attributes = [message.attributes for message in messages]
    return encode_parts(
        [message.body for message in messages], attributes=attributes if any(attributes) else None
    )
