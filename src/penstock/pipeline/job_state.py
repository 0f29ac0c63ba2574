"""The memory of a job from batch to batch and from roll-up to roll-up: small files in the warehouse.

Seen numbers are written after the rows of the batch, under its number. A batch that is repeated after a crash begins with
the numbers that were seen before it, and so gets the same rows.
"""

from __future__ import annotations

import json
from datetime import date
from typing import NamedTuple

from penstock.pipeline.numbers import SeenNumbers
from penstock.pipeline.warehouse import paths
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.notes import read_note

_KEPT_BATCHES = 3
"""Spark repeats the last batch only."""


class Rolling(NamedTuple):
    """The progress of roll-ups."""

    through: int
    """The last batch that was rolled up; -1: none."""
    target: int | None
    """The last batch of the roll-up that was begun and is not finished."""


class JobState:
    """The files of one job and generation."""

    def __init__(self, files: Files, job: str, generation: str) -> None:
        self._files = files
        self._directory = paths.state_directory(job, generation)
        self._noted: set[str] = set()

    # -- numbers that were seen ------------------------------------------------------------------------------

    def last_batch(self) -> int:
        """The last batch whose rows are all there; -1: none."""
        return max(self._batches(), default=-1)

    def seen_before(self, batch: int) -> SeenNumbers:
        """What was seen before a batch."""
        return self.seen_by(max((known for known in self._batches() if known < batch), default=-1))

    def seen_by(self, batch: int) -> SeenNumbers:
        """What was seen up to and with a batch."""
        note = read_note(self._files, self._seen_file(batch))
        return SeenNumbers() if note is None else SeenNumbers.from_note(note)

    def finish_batch(self, batch: int, seen: SeenNumbers) -> None:
        """All rows of the batch are there. What nobody goes back to any more is forgotten."""
        self._files.write_text(self._seen_file(batch), seen.to_json())
        rolling = self.rolling()
        needed = min(batch - _KEPT_BATCHES, rolling.through)
        for known in self._batches():
            if known < needed and known != rolling.target:
                self._files.remove(self._seen_file(known))

    def _batches(self) -> list[int]:
        names = (path.rpartition("/")[2] for path in self._files.files(f"{self._directory}/seen"))
        return [int(name.removesuffix(".json")) for name in names if name.endswith(".json")]

    def _seen_file(self, batch: int) -> str:
        return f"{self._directory}/seen/{batch}.json"

    # -- tables that were written ----------------------------------------------------------------------------

    def written_tables(self) -> set[str]:
        """The names of tables that must be there."""
        names = (path.rpartition("/")[2] for path in self._files.files(f"{self._directory}/tables"))
        return {name.removesuffix(".json") for name in names if name.endswith(".json")}

    def note_table(self, name: str) -> None:
        """After a table was written, and before the batch or the roll-up counts as done: a table without a note after a crash
        is written again. One file for each table, because batches and roll-ups are in two threads.
        """
        if name in self._noted:
            return
        note = f"{self._directory}/tables/{name}.json"
        if not self._files.exists(note):
            self._files.write_text(note, json.dumps({"table": name}))
        self._noted.add(name)

    # -- rows that are gone ----------------------------------------------------------------------------------

    def first_day(self) -> date | None:
        """Days before it may lack rows that tables are rolled up from, because they were not to be kept; None: no day."""
        note = read_note(self._files, f"{self._directory}/kept.json")
        return None if note is None else date.fromisoformat(note["first_day"])

    def note_first_day(self, day: date) -> None:
        """Before the first row goes. It only ever rises."""
        known = self.first_day()
        if known is None or day > known:
            self._files.write_text(f"{self._directory}/kept.json", json.dumps({"first_day": day.isoformat()}))

    # -- roll-ups --------------------------------------------------------------------------------------------

    def rolling(self) -> Rolling:
        """How far roll-ups are."""
        found = read_note(self._files, f"{self._directory}/rolling.json")
        if found is None:
            return Rolling(-1, None)
        return Rolling(found["through"], found["target"])

    def note_rolling(self, rolling: Rolling) -> None:
        """Before a roll-up begins, and when it is finished: one that a crash cut short is repeated as it was."""
        self._files.write_text(f"{self._directory}/rolling.json", json.dumps(rolling._asdict()))
