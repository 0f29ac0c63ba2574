"""Roll-ups: from the rows of batches to the tables that people read.

A roll-up handles batches (after, through]. It records these before it begins, so that an interrupted one is repeated with
the same batches, and gets the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

from pyspark.sql import DataFrame

from penstock.pipeline.job_state import JobState, Rolling
from penstock.pipeline.jobs.job import Job, Rolled, ServerFacts
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import Gap
from penstock.pipeline.warehouse.compaction import Compacted, compact
from penstock.pipeline.warehouse.expiry import Keep, expire
from penstock.pipeline.warehouse.table import WarehouseTable
from penstock.pipeline.warehouse.warehouse import Warehouse

TOO_MANY_DIRECTORIES = 16
"""A run that ends leaves no more small directories than this."""


class RollUpReader:
    """The warehouse for a roll-up: nothing beyond its last batch."""

    def __init__(self, warehouse: Warehouse, after: int, through: int) -> None:
        self._warehouse = warehouse
        self._after = after
        self._through = through

    def all_rows(self, table: WarehouseTable) -> DataFrame:
        """Of a table, however it is filled."""
        if table.filling != "batches":
            return self._warehouse.read(table)
        return self._warehouse.read(table).where(f"batch_id <= {self._through}")

    def new_rows(self, table: WarehouseTable) -> DataFrame:
        """The rows of batches that were not rolled up yet."""
        return self._warehouse.read_batches(table, self._after, self._through)

    def old_rows(self, table: WarehouseTable) -> DataFrame:
        """The rows of batches that were."""
        return self._warehouse.read(table).where(f"batch_id <= {self._after}")

    def new_days(self, table: WarehouseTable) -> list[date]:
        """The days that new rows are of."""
        return self._warehouse.days_of(table, self._after, self._through)


class Roller:
    """Rolls up the rows of one job's batches."""

    def __init__(self, warehouse: Warehouse, job: Job, state: JobState) -> None:
        self._warehouse = warehouse
        self._job = job
        self._state = state
        self._gaps: tuple[Gap, ...] | None = None

    def behind(self) -> bool:
        """Whether there is anything to roll up."""
        rolling = self._state.rolling()
        return rolling.target is not None or rolling.through < self._state.last_batch()

    def roll(self, server_facts: ServerFacts) -> int | None:
        """Rolls up to the last batch; returns it, or None where there was nothing to do."""
        rolling = self._state.rolling()
        target = rolling.target if rolling.target is not None else self._state.last_batch()
        if target <= rolling.through:
            return None
        self._state.note_rolling(Rolling(rolling.through, target))
        if not self._is_done(target):
            gaps = tuple(self._state.seen_by(target).gaps())
            reader = RollUpReader(self._warehouse, rolling.through, target)
            rolled = self._job.roll(reader, server_facts._replace(gaps=gaps))
            self._write(rolled, target, gaps)
            for rows in rolled.kept:
                rows.unpersist()
        if self._job.state is not None:
            self._note_written([self._job.state])
        self._state.note_rolling(Rolling(target, None))
        return target

    def renew(self, server_facts: ServerFacts) -> bool:
        """Replaces the tables that depend on more than rows; False if that must wait for a roll-up, or for a server.

        It has no batches, so nothing is recorded first: an interrupted one leaves the table unchanged, or complete, of the
        same batches.
        """
        rolling = self._state.rolling()
        # Without the server's word limits would be lost, not renewed.
        told = server_facts.missing_of is not None
        if self._job.renew is None or rolling.target is not None or rolling.through < 0 or not told:
            return False
        reader = RollUpReader(self._warehouse, rolling.through, rolling.through)
        for name, rows in self._job.renew(reader, server_facts._replace(gaps=self.gaps())).items():
            self._warehouse.replace_whole(self._job.table(name), rows, rolling.through, few=True)
            self._note_written([name])
        return True

    def gaps(self) -> tuple[Gap, ...]:
        """Rows that are missing, as far as is known."""
        return tuple(self._state.seen_by(self._state.last_batch()).gaps())

    def compact(self, *, everything: bool = False) -> Compacted:
        """Full spans and blocks; `everything`: nothing runs, and where there are many small directories they become one."""
        through = self._state.rolling().through
        done = Compacted(0, 0)
        for table in self._job.tables:
            if table.filling == "batches":
                done = done.and_then(compact(self._warehouse, table, through, everything=everything))
        return done

    def expire(self, keep: Keep, now: datetime, *, everything: bool = False) -> int:
        """Removes expired rows; returns how many directories that changed."""
        through = self._state.rolling().through
        firsts = {table.name: keep.first_day(table, now) for table in self._job.tables}
        sources = [firsts[table.name] for table in self._job.tables if table.filling == "batches"]
        gone = max((day for day in sources if day is not None), default=None)
        if gone is not None:
            self._state.note_first_day(gone)
        changed = 0
        for table in self._job.tables:
            first_day = firsts[table.name]
            if first_day is not None:
                changed += expire(self._warehouse, table, through, first_day, everything=everything)
        return changed

    def small_directories(self) -> int:
        """The most that any table has."""
        tables = [table for table in self._job.tables if table.filling == "batches"]
        return max((len(self._warehouse.batch_directories(table, -1, None)) for table in tables), default=0)

    def _is_done(self, target: int) -> bool:
        """Whether a crash came only after the last step."""
        state = self._job.state
        return state is not None and self._warehouse.whole_through(self._job.table(state)) == target

    def _write(self, rolled: Rolled, target: int, gaps: tuple[Gap, ...]) -> None:
        table = self._job.table
        for name, rows in rolled.added.items():
            self._warehouse.add_batch(table(name), target, rows, parts=1)
        first_day = self._state.first_day()
        for name, (days, rows) in rolled.days.items():
            # A row that comes very late would replace a day whose other rows are gone.
            whole = [day for day in days if first_day is None or day >= first_day]
            if whole:
                self._warehouse.replace_days(table(name), rows, whole)
        self._write_gaps(gaps, target)
        # Before the last table, which shows after a crash that nothing is left to do.
        self._note_written([*rolled.added, *rolled.days, self._job.gaps.name])
        for name, rows in rolled.whole.items():
            self._warehouse.replace_whole(table(name), rows, target)
            self._note_written([name])

    def _note_written(self, names: Iterable[str]) -> None:
        """Those of them that are there: a table may have got no day yet."""
        for name in names:
            if self._warehouse.is_there(self._job.table(name)):
                self._state.note_table(name)

    def _write_gaps(self, gaps: tuple[Gap, ...], target: int) -> None:
        if gaps == self._gaps:
            return
        wanted = self._job.gaps
        rows = [(gap.writer, gap.first, gap.last, gap.missing) for gap in gaps]
        table = local_rows(self._warehouse.spark, rows, wanted.file_schema())
        self._warehouse.replace_whole(wanted, table, target, few=True)
        self._gaps = gaps
