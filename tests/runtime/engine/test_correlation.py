"""Correlation without sockets: answers in any order, errors, ids, and what a loss does."""

from __future__ import annotations

import logging

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.engine.correlation import Correlation
from penstock.steps.step import Reply
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.messages import Count, Done, Failed, Message, Ping, Send, decode_request, encode_message

Outcomes = list[Reply | PenstockError]


def feed(correlation: Correlation, data: bytes) -> None:
    """Hands on what arrives, as a connection does."""
    for request_id, head, body, _ in FrameReader().feed(data):
        correlation.answered(request_id, head, body)


def frame(request_id: int, message: Message, body: bytes = b"") -> bytes:
    return b"".join(encode_frame(request_id, encode_message(message), [body]))


def test_answers_find_who_asked_in_any_order() -> None:
    correlation = Correlation()
    first: Outcomes = []
    second: Outcomes = []
    one, sent = correlation.ask(Send(7), b"body", first.append)
    two, _ = correlation.ask(Ping(), b"", second.append)
    (request,) = FrameReader().feed(b"".join(sent))
    assert (request.request_id, decode_request(request.head), bytes(request.body)) == (one, Send(7), b"body")
    assert correlation.outstanding_bytes == 4
    feed(correlation, frame(two, Done()) + frame(99, Done()) + frame(one, Count(3), b"more"))
    assert second == [Reply(Done(), memoryview(b""))]
    assert first == [Reply(Count(3), memoryview(b"more"))]
    assert (len(correlation), correlation.outstanding_bytes) == (0, 0)
    feed(correlation, frame(one, Done()))  # answered already: nobody is told again
    assert len(first) == 1


@pytest.mark.parametrize(
    ("code", "expected"), [("disk-full", ErrorCode.DISK_FULL), ("of-tomorrow", ErrorCode.INTERNAL)]
)
def test_a_refusal_becomes_an_error(code: str, expected: ErrorCode) -> None:
    correlation, outcomes = Correlation(), list[Reply | PenstockError]()
    ticket, _ = correlation.ask(Ping(), b"", outcomes.append)
    feed(correlation, frame(ticket, Failed(code, "why")))
    (error,) = outcomes
    assert isinstance(error, PenstockError)
    assert error.code is expected
    assert error.message.startswith("why")


def test_a_loss_fails_everything_once_and_leaves_room_to_ask_again() -> None:
    correlation, outcomes = Correlation(), list[Reply | PenstockError]()
    again: Outcomes = []

    def asks_again(outcome: Reply | PenstockError) -> None:
        outcomes.append(outcome)
        correlation.ask(Ping(), b"", again.append)

    correlation.ask(Ping(), b"xyz", asks_again)
    correlation.ask(Ping(), b"", outcomes.append)
    correlation.lose("the cable was cut")
    assert [error.code for error in outcomes if isinstance(error, PenstockError)] == [
        ErrorCode.UNREACHABLE
    ] * 2
    assert "the cable was cut" in str(outcomes[0])
    assert (again, len(correlation), correlation.outstanding_bytes) == ([], 1, 0)


def test_a_successor_goes_on_with_the_ids() -> None:
    correlation = Correlation()
    assert [correlation.enter(lambda outcome: None) for _ in range(3)] == [1, 2, 3]
    assert correlation.successor().next_id() == 4


def test_an_answer_that_cannot_be_read_fails_its_question_and_the_connection() -> None:
    correlation, outcomes = Correlation(), list[Reply | PenstockError]()
    ticket, _ = correlation.ask(Ping(), b"", outcomes.append)
    with pytest.raises(PenstockError, match="an invalid answer"):
        feed(correlation, b"".join(encode_frame(ticket, b"\xc1")))
    assert isinstance(outcomes[0], PenstockError)


def test_a_callback_that_fails_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    correlation, outcomes = Correlation(), list[Reply | PenstockError]()

    def breaks(outcome: Reply | PenstockError) -> None:
        raise ZeroDivisionError

    one, _ = correlation.ask(Ping(), b"", breaks)
    two, _ = correlation.ask(Ping(), b"", outcomes.append)
    with caplog.at_level(logging.ERROR):
        feed(correlation, frame(one, Done()) + frame(two, Done()))
    assert len(outcomes) == 1
    assert "could not process an answer" in caplog.text


def test_a_request_that_cannot_be_encoded_leaves_nothing_behind() -> None:
    correlation = Correlation()
    outcomes: Outcomes = []
    with pytest.raises(OverflowError):
        correlation.ask(Send(7, counter=2**64), b"body", outcomes.append)
    assert (len(correlation), correlation.outstanding_bytes, outcomes) == (0, 0, [])
