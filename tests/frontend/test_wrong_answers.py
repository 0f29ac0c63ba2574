"""An engine of another version may answer something that nobody asked for: whoever asked is told so, and nothing breaks."""

from __future__ import annotations

import msgspec
import pytest

from penstock.frontend.batching.gathered_deletes import GatheredDeletes
from penstock.frontend.batching.gathered_sends import GatheredSends
from penstock.frontend.engine import Answered
from penstock.frontend.queues.metadata import decode
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.steps.asking import ask
from penstock.steps.step import Reply
from penstock.wire.messages import DescribeQueue, Done, QueueDescription, Receipt, Request

NOTHING = memoryview(b"")


class Mistaken:
    """An engine that answers everything with `Done`."""

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        done(Reply(Done(), NOTHING))
        return 1

    def cancel(self, ticket: int) -> None:
        raise AssertionError("nothing here waits")


def test_a_step_raises() -> None:
    steps = ask(DescribeQueue("orders"), QueueDescription)
    next(steps)
    with pytest.raises(PenstockError, match="answered with Done, not QueueDescription") as raised:
        steps.send(Reply(Done(), NOTHING))
    assert raised.value.code is ErrorCode.INTERNAL


def test_everybody_whose_sends_were_gathered_is_told() -> None:
    told: list[object] = []
    sends = GatheredSends(Mistaken(), lambda call: call())
    sends.send(7, [b"one"], [b""], told.append)
    sends.send(7, [b"two"], [b""], told.append)
    assert [one.message for one in told if isinstance(one, PenstockError)] == [
        "the engine answered with Done, not SendResult"
    ] * 2


def test_everybody_whose_deletes_were_gathered_is_told() -> None:
    told: list[object] = []
    deletes = GatheredDeletes(Mistaken(), lambda call: call())
    deletes.delete(7, [Receipt(b"token", [(1, 1)])], told.append)
    assert [one.message for one in told if isinstance(one, PenstockError)] == [
        "the engine answered with Done, not Settled"
    ]


def test_a_stored_redrive_policy_without_an_arn_is_unreadable() -> None:
    stored = (
        b'{"queue_id":7,"attributes":{"redrive_policy":{"deadLetterTargetArn":"none","maxReceiveCount":3}},'
        b'"modified_ms":1}'
    )
    with pytest.raises(msgspec.ValidationError, match="'none' is not the ARN of a queue"):
        decode(stored)
