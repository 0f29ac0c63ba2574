"""The messages that are sent, known to senders and receivers alike, so that what comes back can be checked."""

from __future__ import annotations

import hashlib
import random
import string
from functools import cache
from typing import NamedTuple

import msgspec

DIFFERENT_BODIES = 64
_ALPHABET = string.ascii_letters + string.digits + "+/"


class Content(NamedTuple):
    """One message: its text and the checksum the server must answer."""

    text: str
    md5: str


@cache
def contents(size_bytes: int) -> tuple[Content, ...]:
    """Messages of one size, the same in every process."""
    dice = random.Random(size_bytes)
    texts = ("".join(dice.choices(_ALPHABET, k=size_bytes)) for _ in range(DIFFERENT_BODIES))
    return tuple(
        Content(text, hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()) for text in texts
    )


def send_body(queue_url: str, content: Content) -> bytes:
    """SendMessage's parameters."""
    return msgspec.json.encode({"QueueUrl": queue_url, "MessageBody": content.text})


def send_batch_body(queue_url: str, batch: list[Content]) -> bytes:
    """SendMessageBatch's parameters."""
    entries = [{"Id": str(number), "MessageBody": content.text} for number, content in enumerate(batch)]
    return msgspec.json.encode({"QueueUrl": queue_url, "Entries": entries})


def receive_body(queue_url: str, most: int, wait_seconds: int = 0) -> bytes:
    """ReceiveMessage's parameters."""
    parameters = {"QueueUrl": queue_url, "MaxNumberOfMessages": most, "WaitTimeSeconds": wait_seconds}
    return msgspec.json.encode(parameters)


def delete_batch_body(queue_url: str, handles: list[str]) -> bytes:
    """DeleteMessageBatch's parameters."""
    entries = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles)]
    return msgspec.json.encode({"QueueUrl": queue_url, "Entries": entries})


def attributes_body(queue_url: str) -> bytes:
    """GetQueueAttributes' parameters."""
    return msgspec.json.encode({"QueueUrl": queue_url, "AttributeNames": ["QueueArn"]})


def create_body(name: str, attributes: dict[str, str]) -> bytes:
    """CreateQueue's parameters."""
    return msgspec.json.encode({"QueueName": name, "Attributes": attributes})
