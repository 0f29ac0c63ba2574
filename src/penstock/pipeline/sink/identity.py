"""The identity of a row: a deduplication id that is the same when a task runs again, in any order of rows.

The id is computed from the scope (query, epoch, partition), the contents of the row, and the number of equal rows that
came before in the same task. It is not the row's position: after a shuffle Spark returns the rows of a task in another
order when it is run again, and ids by position would then leave out rows that were never sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGEST_BYTES = 16


class Occurrences:
    """How often each key came before. Eight bytes a key, in sorted runs of doubling length."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def take(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """For each key how often it came before, including these; then all are remembered."""
        count = len(keys)
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        places = np.arange(count)
        begins = np.ones(count, bool)
        begins[1:] = ordered[1:] != ordered[:-1]
        before = places - np.maximum.accumulate(np.where(begins, places, 0))
        for run in self._runs:
            before += np.searchsorted(run, ordered, "right") - np.searchsorted(run, ordered, "left")
        found = np.empty(count, np.int64)
        found[order] = before
        self._runs.append(ordered)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate((self._runs[-1], last)), kind="stable")
        return found


class RowIdentities:
    """Makes the ids of one task."""

    def __init__(self, scope: str) -> None:
        self._key = hashlib.blake2b(scope.encode(), digest_size=32).digest()
        self._occurrences = Occurrences()

    def take(self, rows: Sequence[Any]) -> list[str]:
        """The ids of rows, each given as the bytes that make it what it is."""
        if not rows:
            return []
        key = self._key
        digests = [hashlib.blake2b(row, digest_size=DIGEST_BYTES, key=key).digest() for row in rows]
        keys = np.frombuffer(b"".join(digests), np.uint64)[:: DIGEST_BYTES // 8]
        before = self._occurrences.take(keys)
        if not before.any():
            return [digest.hex() for digest in digests]
        return [
            f"{digest.hex()}-{count}" if count else digest.hex()
            for digest, count in zip(digests, before.tolist(), strict=True)
        ]
