"""Receipt handles: the engine's token, which message of the delivery, and how often it had been received."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from struct import Struct
from typing import NamedTuple

from penstock.sqs.refusals import bad_receipt_handle

_TOKEN_BYTES = 32
_place = Struct("<QI")
_queue_id = Struct("<Q")
_BYTES = _TOKEN_BYTES + _place.size
_CHARACTERS = (_BYTES + 2) // 3 * 4


class ReceiptHandle(NamedTuple):
    """What a handle stands for."""

    token: bytes
    sequence: int
    received: int


def encode_handle(token: bytes, sequence: int, received: int) -> str:
    """The text that is given out."""
    return b2a_base64(token + _place.pack(sequence, received), newline=False).decode()


def read_handle(text: str, queue_id: int) -> ReceiptHandle:
    """What was given out for a message of this queue; whether it is genuine only the engine can say."""
    try:
        # What the module base64 calls in the end, without the regular expression before it: half of the time.
        raw = a2b_base64(text, strict_mode=True) if len(text) == _CHARACTERS else b""
    except (Error, ValueError):
        raw = b""
    # A token begins with the queue that it is for. Of another queue, or of an earlier one of the same name, it is
    # worth nothing here, whoever may read and delete there.
    if len(raw) != _BYTES or _queue_id.unpack_from(raw)[0] != queue_id:
        raise bad_receipt_handle(text)
    sequence, received = _place.unpack_from(raw, _TOKEN_BYTES)
    return ReceiptHandle(raw[:_TOKEN_BYTES], sequence, received)
