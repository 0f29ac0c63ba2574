"""Running numbers: which rows of a batch are new, and which are missing.

Writers number their rows without gaps, and may send some twice after a crash. So only the ranges of seen numbers must be
remembered for each writer: one range, while nothing is lost. A row may say that its writer skipped numbers before it:
those are not missing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql import DataFrame

from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.statement import select

Stretch = tuple[int, int]
"""The first number and the last."""

_WORD_BITS = 6


class Gap(NamedTuple):
    """Numbers of a writer that were never seen, although later ones were."""

    writer: str
    first: int
    last: int

    @property
    def missing(self) -> int:
        """How many."""
        return self.last - self.first + 1


class SeenNumbers:
    """The stretches of every writer, in rising order, none touching the next."""

    def __init__(self, stretches: dict[str, list[Stretch]] | None = None) -> None:
        self.stretches = stretches or {}

    def overlap(self, writer: str, stretch: Stretch) -> list[Stretch]:
        """The parts of a stretch that were seen before."""
        first, last = stretch
        known = self.stretches.get(writer, [])
        place = max(0, bisect_left(known, (first, first)) - 1)
        found = []
        for low, high in known[place:]:
            if low > last:
                break
            if high >= first:
                found.append((max(low, first), min(high, last)))
        return found

    def add(self, writer: str, stretch: Stretch) -> None:
        """Numbers were seen, some of them again perhaps."""
        self.stretches[writer] = joined([*self.stretches.get(writer, []), stretch])

    def gaps(self) -> list[Gap]:
        """The gaps between ranges."""
        return [
            Gap(writer, before[1] + 1, after[0] - 1)
            for writer, known in sorted(self.stretches.items())
            for before, after in pairwise(known)
        ]

    def copy(self) -> SeenNumbers:
        """One that can be added to without changing this one."""
        return SeenNumbers({writer: list(known) for writer, known in self.stretches.items()})

    def to_json(self) -> str:
        """For the next run."""
        return json.dumps(self.stretches, separators=(",", ":"))

    @classmethod
    def from_note(cls, note: Mapping[str, Iterable[Stretch]]) -> SeenNumbers:
        """What `to_json` wrote, from the run before."""
        return cls({writer: [(low, high) for low, high in known] for writer, known in note.items()})


class Sorted(NamedTuple):
    """A batch, divided into new and repeated rows."""

    fresh: DataFrame
    """Every new row once."""
    seen: SeenNumbers
    """With this batch."""
    rows: int
    """New ones."""
    repeated: int
    """Rows that are not new, or twice in the batch."""
    latest: datetime | None
    """The time of the youngest row."""


def sort_out(
    batch: DataFrame, writer: str, number: str, seen: SeenNumbers, left_out_from: str = ""
) -> Sorted:
    """Which rows are new. The batch is gone through twice, so it should be kept (`persist`).

    `left_out_from`, in SQL: for a row before which numbers were skipped the first of them, else null. Such a row has a
    number divisible by 64, so that its word is its number.

    A word of 64 bits says which of 64 neighbouring numbers are there: exact, and a sum over longs, which costs a tenth of
    a distinct count. Only if a row did come twice are rows compared one by one.
    """
    words = select(
        f"""
        select cast({writer} as string) as writer,
            shiftright({number}, {_WORD_BITS}) as word,
            bit_or(shiftleft(1L, cast({number} & 63 as int))) as mask,
            count(*) as rows,
            max(time) as latest,
            min({left_out_from or "cast(null as bigint)"}) as left_out
        from {{batch}}
        group by cast({writer} as string), shiftright({number}, {_WORD_BITS})
        """,
        batch=batch,
    ).collect()
    after = seen.copy()
    rows = distinct = 0
    again: list[tuple[str, int, int]] = []
    found: dict[str, list[Stretch]] = {}
    left_out: list[tuple[str, Stretch]] = []
    for line in words:
        rows += line["rows"]
        found.setdefault(line["writer"], []).extend(_stretches(line["word"], line["mask"]))
        if line["left_out"] is not None:
            left_out.append((line["writer"], (line["left_out"], (line["word"] << _WORD_BITS) - 1)))
    old = 0
    for who, pieces in found.items():
        for stretch in joined(pieces):
            distinct += stretch[1] - stretch[0] + 1
            for low, high in seen.overlap(who, stretch):
                again.append((who, low, high))
                old += high - low + 1
            after.add(who, stretch)
    for who, stretch in left_out:
        after.add(who, stretch)
    fresh = batch
    if distinct != rows:
        fresh = fresh.dropDuplicates([writer, number])
    if again:
        fresh = _without(fresh, writer, number, again)
    latest = max((line["latest"] for line in words), default=None)
    return Sorted(fresh, after, distinct - old, rows - distinct + old, latest)


def joined(stretches: list[Stretch]) -> list[Stretch]:
    """The same numbers in as few stretches as possible, in rising order."""
    found: list[Stretch] = []
    for low, high in sorted(stretches):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _stretches(word: int, mask: int) -> list[Stretch]:
    """The ranges in a word of 64 bits; nearly always one."""
    base = word << _WORD_BITS
    if mask == -1:
        return [(base, base + 63)]
    return joined([(base + bit, base + bit) for bit in range(64) if mask >> bit & 1])


def _without(rows: DataFrame, writer: str, number: str, again: list[tuple[str, int, int]]) -> DataFrame:
    known = local_rows(rows.sparkSession, again, "known_writer string, known_first long, known_last long")
    return select(
        f"""
        select /*+ broadcast(known) */ * from {{rows}} left anti join {{known}} as known
        on cast({writer} as string) = known_writer and {number} between known_first and known_last
        """,
        rows=rows,
        known=known,
    )
