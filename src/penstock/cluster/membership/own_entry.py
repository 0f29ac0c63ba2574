"""An entry that only one process writes, under its lease.

Every write is on condition of the version before it. So a write that the store carries out late, after its writer has
given up waiting for it, cannot undo a later one. If the version is unknown because an outcome is, the process reads the
entry first.
"""

from __future__ import annotations

from penstock.cluster.membership.store_requests import (
    Conflict,
    Done,
    Found,
    Look,
    Outcome,
    Put,
    Unknown,
)


class OwnEntry:
    """The known state of one entry, and its next value."""

    def __init__(self, key: str, version: int | None, value: bytes | None) -> None:
        self.key = key
        self.version = version
        """None: it has to be looked up."""
        self.value = value
        """Its present value, as far as is known."""
        self.retry_ms = 0
        """Nothing is asked before."""
        self._asked: Look | Put | None = None

    @property
    def is_asking(self) -> bool:
        """Whether an answer of the store is awaited."""
        return self._asked is not None

    def next_request(self, wanted: bytes, lease: int, now_ms: int) -> Look | Put | None:
        """The next request to the store to make the value `wanted`; None: nothing now."""
        if self._asked is not None or wanted == self.value or now_ms < self.retry_ms:
            return None
        if self.version is None:
            self._asked = Look(self.key)
        else:
            self._asked = Put(self.key, wanted, self.version, lease)
        return self._asked

    def look(self) -> Look:
        """Reads the entry, whatever is known; no other request is in progress."""
        self._asked = Look(self.key)
        return self._asked

    def answered(self, outcome: Outcome, now_ms: int, retry_ms: int) -> None:
        """Takes the outcome of the last request in."""
        asked, self._asked = self._asked, None
        match outcome:
            case Done(version) if isinstance(asked, Put):
                self.version, self.value = version, asked.value
            case Found(value, version):
                self.version, self.value = version, value
            case Conflict():
                self.version = self.value = None
            case Unknown():
                self.version = self.value = None
                self.retry_ms = now_ms + retry_ms
            case _:
                self.retry_ms = now_ms + retry_ms
