"""Appends that find no room: the k-th of a kind, and perhaps some after it, is refused as by a busy or full journal.

A journal refuses whenever the next file is not ready, so every single append may be refused. Random faults hit sends,
which are most of the appends; so a refusal waits for one kind of record, or of entry, and hits its k-th.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal, NamedTuple, get_args

from penstock.model.records import CATALOGUE, CatalogueRecord, QueueRecord, Sent, decode_record
from penstock.storage.disk import DiskFullError
from penstock.storage.entry import BATCH, CUT, IMAGE, RECORD
from penstock.storage.errors import JournalBusyError, JournalExhaustedError

REPLICA_KINDS = {"image": IMAGE, "batch": BATCH, "cut": CUT}
RECORD_KINDS = tuple(kind.__name__ for kind in (*get_args(QueueRecord), *get_args(CatalogueRecord)))
KINDS = ("any", "catalogue", *REPLICA_KINDS, *RECORD_KINDS)

Why = Literal["busy", "full"]


class RefusedAppends(NamedTuple):
    """Which appends are refused, and why."""

    kind: str
    first: int
    """Counted from now on among those of its kind."""
    times: int
    why: Why


def draw_refusal(random: Random) -> RefusedAppends:
    """What is refused next: any append, or one of some kind."""
    kind = "any" if random.random() < 0.25 else random.choice(KINDS)
    furthest = random.choice((1, 3, 20)) if kind != "any" else random.choice((20, 400))
    why: Why = "full" if random.random() < 0.25 else "busy"
    return RefusedAppends(kind, random.randint(1, furthest), random.choice((1, 1, 2, 6, 40)), why)


class Refusals:
    """Those of one machine; they continue through its restarts."""

    def __init__(self) -> None:
        self._armed: list[RefusedAppends] = []
        self._seen: list[int] = []
        self.lets_arrive: int | None = None
        """How many messages may still move into queues, for as long as somebody hunts (`targeted_dead_letters.py`); None: all."""
        self.refused: Callable[[RefusedAppends, str], None] = lambda refusal, what: None
        """Told of every append that was refused."""
        self.reserve_begun: Callable[[], None] = lambda: None
        """Called when the journal continues in its last file."""

    def arm(self, refusal: RefusedAppends) -> None:
        """Waits for appends to refuse, beside those that wait already."""
        self._armed.append(refusal)
        self._seen.append(0)

    def disarm(self) -> None:
        """Nothing is refused any more."""
        self._armed, self._seen, self.lets_arrive = [], [], None

    @property
    def is_armed(self) -> bool:
        """Whether anything may be refused."""
        return bool(self._armed) or self.lets_arrive is not None

    def error_for(self, kind: int, partition: int, head: bytes, *, reserve: bool) -> Exception | None:
        """The error of an append; None: it is not refused."""
        if not self.is_armed:
            return None
        record = decode_record(head) if kind == RECORD else None
        if isinstance(record, Sent) and record.origin is not None and self.lets_arrive is not None:
            if not self.lets_arrive:
                return JournalBusyError("simulated")
            self.lets_arrive -= 1
        what = type(record).__name__ if record is not None else ""
        for place, refusal in enumerate(self._armed):
            if not _is_meant(refusal, kind, partition, what):
                continue
            self._seen[place] += 1
            if self._seen[place] < refusal.first:
                continue
            if self._seen[place] >= refusal.first + refusal.times - 1:
                del self._armed[place], self._seen[place]
            self.refused(refusal, what or refusal.kind)
            if refusal.why == "busy":
                return JournalBusyError("simulated")
            return JournalExhaustedError("simulated") if reserve else DiskFullError("simulated")
        return None


def _is_meant(refusal: RefusedAppends, kind: int, partition: int, what: str) -> bool:
    if refusal.kind == "any":
        return True
    if refusal.kind == "catalogue":
        return partition == CATALOGUE
    return refusal.kind == what or REPLICA_KINDS.get(refusal.kind) == kind
