"""The id of a message: derived from where it was first sent, so that nothing has to be stored or looked up.

A duplicate of a message that is long deleted gets the original's id, and a message keeps its id when it moves to a
dead-letter queue and back.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

from penstock.model.records import Origin
from penstock.model.runs import Runs

_identity = Struct("<QQ").pack


def message_id(queue_id: int, sequence: int) -> str:
    """A UUID (version 8: made of a hash) of a message by its first home."""
    text = blake2b(_identity(queue_id, sequence), digest_size=16, person=b"penstock.message").hexdigest()
    return f"{text[:8]}-{text[8:12]}-8{text[13:16]}-a{text[17:20]}-{text[20:]}"


def message_ids(queue_id: int, first: int, count: int, origin: Origin | None) -> list[str]:
    """The ids of a run of messages, wherever they came from."""
    if origin is None:
        return [message_id(queue_id, sequence) for sequence in range(first, first + count)]
    if origin.roots is not None:
        return [message_id(*root) for root in origin.roots]
    return [message_id(origin.source_id, sequence) for sequence in _sequences(origin.runs)]


def _sequences(runs: Runs) -> list[int]:
    return [sequence for first, count in runs for sequence in range(first, first + count)]
