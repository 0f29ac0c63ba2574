"""No character that XML forbids gets into a body, by whichever protocol and however it is written."""

from __future__ import annotations

import pytest

from penstock.sqs.compatibility import EXTENDED
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.messages.outgoing import QueueTraits, check_message
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.shapes.messages import SendMessageRequest
from tests.sqs.requests import QUEUE_URL, form_request, json_request, read

TRAITS = QueueTraits(False, False, 1_048_576)
FORBIDDEN = [chr(code) for code in range(32) if chr(code) not in "\t\n\r"] + ["\ufffe", "\uffff"]
PLACES = (0, 1, 7, 8, 15, 16, 31, 63, 1023)
"""Whoever scans text in strides must find it at the beginning, at the end and between."""


def in_json(text: bytes) -> HttpRequest:
    return json_request("SendMessage", b'{"QueueUrl":"%s","MessageBody":"%s"}' % (QUEUE_URL.encode(), text))


def outcome(request: HttpRequest) -> ErrorKind | str:
    """The body that would be sent, or why it is not."""
    try:
        call = read(request)
        assert isinstance(call.parameters, SendMessageRequest)
        message = check_message(call.parameters, TRAITS, EXTENDED, escapes=call.escapes)
    except SqsError as error:
        return error.kind
    return message.body.decode()


@pytest.mark.parametrize("forbidden", FORBIDDEN, ids=ascii)
def test_what_is_forbidden_is_refused_however_it_is_written(forbidden: str) -> None:
    refusals = {ErrorKind.INVALID_MESSAGE_CONTENTS, ErrorKind.SERIALIZATION}
    for place in PLACES:
        text = "x" * place + forbidden + "x" * (1023 - place)
        assert outcome(in_json(text.encode())) in refusals
        escaped = text.replace(forbidden, f"\\u{ord(forbidden):04x}").encode()
        assert outcome(in_json(escaped)) is ErrorKind.INVALID_MESSAGE_CONTENTS
        form = form_request("/", Action="SendMessage", QueueUrl=QUEUE_URL, MessageBody=text)
        assert outcome(form) is ErrorKind.INVALID_MESSAGE_CONTENTS


@pytest.mark.parametrize("escape", [b"\\b", b"\\f"])
def test_short_escapes_are_no_way_around(escape: bytes) -> None:
    assert outcome(in_json(b"text" + escape)) is ErrorKind.INVALID_MESSAGE_CONTENTS


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"text", "text"),
        ("\u00e4\U0001f600".encode(), "\u00e4\U0001f600"),
        (b"\\u00e4\\ud83d\\ude00", "\u00e4\U0001f600"),
        (b'{\\"a\\": 1}\\n\\t\\r', '{"a": 1}\n\t\r'),
        (b"\\\\b", "\\b"),
        (b"\x7f", "\x7f"),
    ],
)
def test_what_is_allowed_arrives_as_it_was_meant(written: bytes, meant: str) -> None:
    assert outcome(in_json(written)) == meant


def test_only_json_without_a_backslash_is_known_to_be_without_escapes() -> None:
    assert not read(in_json(b"text")).escapes
    assert read(in_json(b"te\\u0078t")).escapes
    assert read(form_request("/", Action="SendMessage", QueueUrl=QUEUE_URL, MessageBody="text")).escapes
