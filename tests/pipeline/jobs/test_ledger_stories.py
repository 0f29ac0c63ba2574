"""What the ledger says of stories that are easily taken for another: all at once, and in roll-ups that cut them in two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.job import ServerFacts
from penstock.pipeline.jobs.ledger import JOB, check_everything
from penstock.pipeline.jobs.ledger_gaps import Extent, extents
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import Gap
from tests.pipeline.jobs.ledger_stories import KNOWN_QUEUES, Story, all_stories
from tests.pipeline.rows import NOON, lifecycle_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, Row, SparkSession

    from penstock.pipeline.warehouse.table import WarehouseTable

HALF_A_DAY_LATER_US = int(NOON.timestamp() * 1e6) + 12 * 3_600_000_000


def around(gaps: Iterable[Gap]) -> ServerFacts:
    return ServerFacts(HALF_A_DAY_LATER_US, KNOWN_QUEUES, gaps=tuple(gaps))


def by_story(stories: dict[str, Story], found: list[Row]) -> dict[str, list[tuple[str, int | None]]]:
    names = {story.partition_id: name for name, story in stories.items()}
    told: dict[str, list[tuple[str, int | None]]] = {}
    for row in sorted(found, key=lambda row: (row["kind"], row["sequence"] or 0)):
        told.setdefault(names[row["partition_id"]], []).append((row["kind"], row["sequence"]))
    return told


def expected(stories: dict[str, Story]) -> dict[str, list[tuple[str, int | None]]]:
    return {name: story.expected for name, story in stories.items() if story.expected}


class Memory:
    """A warehouse in memory, as a roll-up reads it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._rows: dict[str, DataFrame] = {}
        self.old: list[dict[str, Any]] = []
        self.new: list[dict[str, Any]] = []

    def keep(self, table: WarehouseTable, rows: DataFrame) -> list[Row]:
        kept = table.shaped(rows).collect()
        schema = table.shaped(rows).schema
        self._rows[table.name] = local_rows(self._spark, kept, schema)
        return kept

    def all_rows(self, table: WarehouseTable) -> DataFrame:
        if table is tables.ROWS:
            return lifecycle_frame(self._spark, self.old + self.new)
        empty = local_rows(self._spark, [], table.read_schema())
        return self._rows.get(table.name, empty)

    def new_rows(self, table: WarehouseTable) -> DataFrame:
        assert table is tables.ROWS
        return lifecycle_frame(self._spark, self.new)

    def old_rows(self, table: WarehouseTable) -> DataFrame:
        return local_rows(self._spark, [], table.read_schema())

    def new_days(self, table: WarehouseTable) -> list[Any]:
        raise NotImplementedError


@pytest.mark.beside
def test_all_at_once(spark: SparkSession) -> None:
    stories = all_stories()
    rows = lifecycle_frame(spark, [row for story in stories.values() for row in story.rows])
    found = check_everything(rows, around(gap for story in stories.values() for gap in story.gaps)).collect()
    assert by_story(stories, found) == expected(stories)
    said = {row["partition_id"]: row["explanation"] for row in found if row["kind"] == "gap"}
    began = stories["a_gap_in_which_messages_began"].partition_id
    assert said[began] == (
        "change 2 never reached this job, so its contents are unknown; messages 2 to 3 began there; "
        "messages up to 1 may have been handed out or ended there"
    )
    retention = stories["a_gap_before_retention_is_over"].partition_id
    assert said[retention] == (
        "change 3 never reached this job, so its contents are unknown; "
        "messages up to 2 may have been handed out or ended there"
    )


@pytest.mark.beside
def test_in_roll_ups_that_cut_them_in_two(spark: SparkSession) -> None:
    stories = all_stories()
    memory = Memory(spark)
    found: list[Row] = []
    for step in range(2):
        memory.old += memory.new
        memory.new = [row for story in stories.values() for row in _part(story, step)]
        seen = {(row["partition_id"], row["number"]) for row in memory.old + memory.new}
        gaps = [
            gap
            for story in stories.values()
            for gap in story.gaps
            if any((story.partition_id, number) in seen for number in range(gap.last + 1, gap.last + 9))
        ]
        rolled = JOB.roll(memory, around(gaps))
        found += tables.FINDINGS.shaped(rolled.added[tables.FINDINGS.name]).collect()
        told = [(gap.writer, gap.first, gap.last, gap.missing) for gap in gaps]
        still_there = tables.OPEN.shaped(rolled.whole[tables.OPEN.name]).collect()
        state = memory.keep(tables.STATE, rolled.whole[tables.STATE.name])
        assert len(state) == len({(row["partition_id"], row["sequence"]) for row in state})
        memory.keep(tables.GAPS, local_rows(spark, told, tables.GAPS.file_schema()))
    assert by_story(stories, found) == expected(stories)
    for name, story in stories.items():
        here = sorted(row["sequence"] for row in still_there if row["partition_id"] == story.partition_id)
        assert here == story.open, name


@pytest.mark.parametrize(
    ("gaps", "found"),
    [
        ([], []),
        ([Gap("7", 4, 6)], [Extent(7, 4, 4, 7)]),
        ([Gap("7", 4, 6), Gap("9", 2, 2), Gap("7", 20, 21)], [Extent(7, 4, 20, 22), Extent(9, 2, 2, 3)]),
    ],
)
def test_what_gaps_of_a_partition_come_to(gaps: list[Gap], found: list[Extent]) -> None:
    assert extents(gaps) == found


def _part(story: Story, step: int) -> list[dict[str, Any]]:
    cut = len(story.rows) if story.cut is None else story.cut
    return story.rows[cut:] if step else story.rows[:cut]
