"""Receipt handles: the engine's token, the message in the delivery, and its receive count."""

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
"""The contents of a handle: the token, the sequence number, and the receive count."""


def encode_handles(token: bytes, first: int, received: Sequence[int]) -> list[str]:
    """The texts of messages in a row, with how often each was received."""
    pack = _place.pack
    return [
        b2a_base64(token + pack(sequence, times), newline=False).decode()
        for sequence, times in enumerate(received, first)
    ]


def read_handle(text: str, queue_id: int) -> ReceiptHandle:
    """Decodes the handle of a message of this queue; only the engine can say whether it is genuine."""
    try:
        # The function that the module base64 calls in the end, without its regular expression: half of the time.
        raw = a2b_base64(text, strict_mode=True) if len(text) == _CHARACTERS else b""
    except (Error, ValueError):
        raw = b""
    # A token begins with its queue. A token of another queue, or of an earlier one with the same name, is refused here,
    # because the caller's rights were checked for this queue.
    if len(raw) != _BYTES:
        raise bad_receipt_handle(text)
    for_queue, sequence, received = _queue_and_place.unpack(raw)
    if for_queue != queue_id:
        raise bad_receipt_handle(text)
    return raw[:_TOKEN_BYTES], sequence, received
