"""The id of a message, computed from its first queue and number, so that nothing is stored or looked up.

A duplicate of a message that was deleted long ago gets the original's id, and a message keeps its id when it moves to a
dead-letter queue and back.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from penstock.model.origin import Origin
from penstock.model.runs import Runs

_HALF_BITS = 48
"""Of a sequence number; above them is the partition's ordinal, in a cluster."""
_HALF = (1 << _HALF_BITS) - 1
_SCATTER = 0x9E3779B97F4B
"""Odd, so that multiplying by it modulo 2^48 gives every number another one."""


@lru_cache(maxsize=16_384)
def _of_queue(queue_id: int, ordinal: int) -> tuple[str, int]:
    """The beginning of the ids of a partition of a queue, and the value that distinguishes their ends from those of another."""
    home = queue_id.to_bytes(8, "little") + (ordinal.to_bytes(8, "little") if ordinal else b"")
    text = blake2b(home, digest_size=16, person=b"penstock.message").hexdigest()
    return f"{text[:8]}-{text[8:12]}-8{text[13:16]}-a{text[17:20]}-", int(text[20:], 16)


def message_id(queue_id: int, sequence: int) -> str:
    """A UUID (version 8) of a message by its first home: different for every message of a queue."""
    start, mask = _of_queue(queue_id, sequence >> _HALF_BITS)
    return start + ((sequence * _SCATTER ^ mask) & _HALF).to_bytes(6, "big").hex()


def sent_ids(queue_id: int, sequences: Iterable[int]) -> list[str]:
    """The ids of messages that were first sent to this queue."""
    numbers = list(sequences)
    if numbers and max(numbers) > _HALF:  # of several partitions, perhaps
        return [message_id(queue_id, sequence) for sequence in numbers]
    start, mask = _of_queue(queue_id, 0)
    # The format `012x` takes twice as long: 3 µs for ten against 1.5.
    return [start + ((sequence * _SCATTER ^ mask) & _HALF).to_bytes(6, "big").hex() for sequence in numbers]


def message_ids(queue_id: int, first: int, count: int, origin: Origin | None) -> list[str]:
    """The ids of a run of messages with any origin."""
    if origin is None:
        return sent_ids(queue_id, range(first, first + count))
    if origin.roots is not None:
        return [message_id(*root) for root in origin.roots]
    return sent_ids(origin.source_id, _sequences(origin.runs))


def _sequences(runs: Runs) -> list[int]:
    return [sequence for first, count in runs for sequence in range(first, first + count)]
