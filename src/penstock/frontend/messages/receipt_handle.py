"""Receipt handles: the engine's token, which message of the delivery, and how often it had been received."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Sequence
from struct import Struct

from penstock.sqs.refusals import bad_receipt_handle

_TOKEN_BYTES = 32
_place = Struct("<QI")
_queue_and_place = Struct(f"<Q{_TOKEN_BYTES - 8}xQI")
_BYTES = _TOKEN_BYTES + _place.size
_CHARACTERS = (_BYTES + 2) // 3 * 4


ReceiptHandle = tuple[bytes, int, int]
"""What a handle stands for: the token, the sequence number, and how often the message had been received."""


def encode_handles(token: bytes, first: int, received: Sequence[int]) -> list[str]:
    """The texts of messages in a row, with how often each was received."""
    pack = _place.pack
    return [
        b2a_base64(token + pack(sequence, times), newline=False).decode()
        for sequence, times in enumerate(received, first)
    ]


def read_handle(text: str, queue_id: int) -> ReceiptHandle:
    """What was given out for a message of this queue; whether it is genuine only the engine can say."""
    try:
        # What the module base64 calls in the end, without the regular expression before it: half of the time.
        raw = a2b_base64(text, strict_mode=True) if len(text) == _CHARACTERS else b""
    except (Error, ValueError):
        raw = b""
    # A token begins with the queue that it is for. Of another queue, or of an earlier one of the same name, it is
    # worth nothing here, whoever may read and delete there.
    if len(raw) != _BYTES:
        raise bad_receipt_handle(text)
    for_queue, sequence, received = _queue_and_place.unpack(raw)
    if for_queue != queue_id:
        raise bad_receipt_handle(text)
    return raw[:_TOKEN_BYTES], sequence, received
