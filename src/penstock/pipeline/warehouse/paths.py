"""The directories of a warehouse.

<table>/gen=G/block=B/span=S/batch_id=N[/day=D]/*.parquet    a table filled by batches
<table>/gen=G/day=D/*.parquet                                one whose days are replaced
<table>/gen=G/through=N/*.parquet                            one that is replaced whole, as of batch N
_staging/…                                                   what is being written, and what was taken out
_swaps/…                                                     exchanges of directories that are not finished
_state/<job>/<gen>/…                                         the memory of a job from batch to batch, and what it has written
_jobs/<job>.json                                             the generation of a job's tables
_locks/<job>                                                 held while a job runs, on local disks
_checkpoints/<job>                                           Spark's own, unless --checkpoint names another

DuckDB also reads directories whose names begin with a dot or an underscore: so nothing unfinished may be
inside a table.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

SPAN_BATCHES = 64
"""Directories of so many batches are combined into one when all of them are there."""
BLOCK_SPANS = 64
"""And so many of those again: at a batch a second an hour and eight minutes."""

STAGING = "_staging"
SWAPS = "_swaps"
STATE = "_state"
JOBS = "_jobs"
LOCKS = "_locks"
CHECKPOINTS = "_checkpoints"


class BatchPath(NamedTuple):
    """The directory of a batch in a table."""

    table: str
    generation: str
    batch: int

    @property
    def block_directory(self) -> str:
        """The directory of 4,096 batches."""
        number = self.batch // (SPAN_BATCHES * BLOCK_SPANS)
        return f"{generation_directory(self.table, self.generation)}/block={number}"

    @property
    def span_directory(self) -> str:
        """The directory of 64 batches."""
        return f"{self.block_directory}/span={self.batch // SPAN_BATCHES}"

    @property
    def directory(self) -> str:
        """The directory of the batch."""
        return f"{self.span_directory}/batch_id={self.batch}"


def generation_directory(table: str, generation: str) -> str:
    """The directory of all rows of a generation."""
    return f"{table}/gen={generation}"


def day_directory(table: str, generation: str, day: date) -> str:
    """The directory of a day of a table whose days are replaced."""
    return f"{generation_directory(table, generation)}/day={day.isoformat()}"


def state_directory(job: str, generation: str) -> str:
    """The directory of a job's memory."""
    return f"{STATE}/{job}/{generation}"


def value_of(directory: str, key: str) -> str | None:
    """The value in a name such as `batch_id=17`; None if it is of another key."""
    name, equals, value = directory.rpartition("/")[2].partition("=")
    return value if equals and name == key else None


def numbers_of(directories: list[str], key: str) -> dict[int, str]:
    """The directories named after a number, by it, in its order."""
    found = {int(value): path for path in directories if (value := value_of(path, key)) is not None}
    return dict(sorted(found.items()))
