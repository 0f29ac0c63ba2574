"""Answers, taken apart and checked: a wrong one ends the run, because figures of wrong answers are worth nothing."""

from __future__ import annotations

import re

import msgspec

from benchmarks.sqs.bodies import Content

OK = b"HTTP/1.1 200 "
_MESSAGE_ID = re.compile(rb'"MessageId":"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"')
_SHOWN_BYTES = 600


class WrongAnswer(Exception):
    """The server did not answer what it must."""


class _Received(msgspec.Struct, rename="pascal"):
    message_id: str
    receipt_handle: str
    body: str
    md5_of_body: str = msgspec.field(name="MD5OfBody")


class _Messages(msgspec.Struct, rename="pascal"):
    messages: list[_Received] = []


class _Entry(msgspec.Struct, rename="pascal"):
    id: str
    message_id: str = ""
    md5_of_message_body: str = msgspec.field(name="MD5OfMessageBody", default="")


class _Batch(msgspec.Struct, rename="pascal"):
    successful: list[_Entry] = []
    failed: list[msgspec.Raw] = []


_messages = msgspec.json.Decoder(_Messages)
_batch = msgspec.json.Decoder(_Batch)


def body_of(answer: bytes) -> bytes | None:
    """The body of a success once the whole answer is there, None before; anything but a success raises."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = answer[:end].lower()
    at = head.find(b"content-length:")
    if at < 0:
        raise WrongAnswer(f"an answer without Content-Length: {shown(answer)}")
    stop = head.find(b"\r\n", at)
    size = end + 4 + int(head[at + 15 : stop if stop >= 0 else end])
    if len(answer) < size:
        return None
    if len(answer) > size:
        raise WrongAnswer(f"more was answered than asked: {shown(answer)}")
    if not answer.startswith(OK):
        raise WrongAnswer(f"not a success: {shown(answer)}")
    return answer[end + 4 :]


def shown(answer: bytes) -> str:
    """An answer as a person is told of it."""
    return answer[:_SHOWN_BYTES].decode("latin-1").replace("\r\n", " | ")


def check_sent(body: bytes, expected: bytes) -> None:
    """SendMessage's answer; `expected` is `sent_mark` of the message."""
    if expected not in body or not _MESSAGE_ID.search(body):
        raise WrongAnswer(f"SendMessage was answered {shown(body)}")


def sent_mark(content: Content) -> bytes:
    """What the answer to sending a message holds."""
    return f'"MD5OfMessageBody":"{content.md5}"'.encode()


def check_sent_batch(body: bytes, batch: list[Content]) -> None:
    """SendMessageBatch's answer: every entry succeeded, each with the checksum of its message."""
    answer = _batch.decode(body)
    checksums = {entry.id: entry.md5_of_message_body for entry in answer.successful if entry.message_id}
    if answer.failed or checksums != {str(number): content.md5 for number, content in enumerate(batch)}:
        raise WrongAnswer(f"SendMessageBatch was answered {shown(body)}")


def received_handles(body: bytes, checksums: dict[str, str]) -> list[str]:
    """ReceiveMessage's answer: the handles of its messages, each a message that was sent."""
    messages = _messages.decode(body).messages
    for message in messages:
        if checksums.get(message.body) != message.md5_of_body or not message.message_id:
            raise WrongAnswer(f"ReceiveMessage was answered {shown(body)}")
    return [message.receipt_handle for message in messages]


def check_deleted(body: bytes, count: int) -> None:
    """DeleteMessageBatch's answer: every entry succeeded."""
    answer = _batch.decode(body)
    if answer.failed or len(answer.successful) != count:
        raise WrongAnswer(f"DeleteMessageBatch was answered {shown(body)}")
