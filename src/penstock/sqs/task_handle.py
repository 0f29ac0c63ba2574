"""Handles of message move tasks: base64 of a small JSON object, as in SQS."""

from __future__ import annotations

import base64
import binascii

import msgspec

from penstock.sqs.refusals import bad_task_handle

HANDLE_CHARACTERS = 1024


class TaskHandle(msgspec.Struct, frozen=True, rename="camel"):
    """The task, and its source."""

    task_id: str
    source_arn: str


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(TaskHandle)


def encode_task_handle(task_id: str, source_arn: str) -> str:
    """The handle that is given out."""
    return base64.b64encode(_encoder.encode(TaskHandle(task_id, source_arn))).decode()


def decode_task_handle(handle: str) -> TaskHandle:
    """The contents of a handle; raises when it was never issued."""
    if len(handle) > HANDLE_CHARACTERS:
        raise bad_task_handle()
    try:
        return _decoder.decode(base64.b64decode(handle, validate=True))
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        raise bad_task_handle() from None
