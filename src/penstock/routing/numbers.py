"""Converts numbers and receipts between clients and the node of one partition.

A client's sequence number has the ordinal of the partition above bit 48. A client's receipt token names the queue, the
node's names the partition; the partition follows from the numbers of the receipt.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import LARGEST_NUMBER, ORDINAL_SHIFT
from penstock.model.runs import Run, Runs

_ID_BYTES = 8
_TOKEN_BYTES = 32


def outward(ordinal: int, number: int) -> int:
    """The number as clients see it."""
    return ordinal << ORDINAL_SHIFT | number


def inward(number: int) -> tuple[int, int]:
    """Which partition of its queue a client's number belongs to, and the number there."""
    return number >> ORDINAL_SHIFT, number & LARGEST_NUMBER


def outward_runs(ordinal: int, runs: Runs) -> Runs:
    """Runs of one partition as clients see them."""
    if not ordinal:
        return runs
    base = ordinal << ORDINAL_SHIFT
    return [(base | first, count) for first, count in runs]


def inward_runs(runs: Iterable[Run]) -> dict[int, Runs]:
    """A client's runs by partition; the order within each stays."""
    found: dict[int, Runs] = {}
    for first, count in runs:
        ordinal, number = inward(first)
        found.setdefault(ordinal, []).append((number, count))
    return found


def client_token(queue_id: int, token: bytes) -> bytes:
    """A node's token as the client gets it; empty stays empty."""
    return queue_id.to_bytes(_ID_BYTES, "little") + token[_ID_BYTES:] if token else token


def queue_of_token(token: bytes) -> int:
    """The queue that a client's token is about."""
    if len(token) != _TOKEN_BYTES:
        raise PenstockError(ErrorCode.BAD_RECEIPT, "the receipt was not given out by this cluster")
    return int.from_bytes(token[:_ID_BYTES], "little")


def node_token(partition: int, token: bytes) -> bytes:
    """A client's token as the node of the partition gave it out; whether it did the node can tell."""
    return partition.to_bytes(_ID_BYTES, "little") + token[_ID_BYTES:]
