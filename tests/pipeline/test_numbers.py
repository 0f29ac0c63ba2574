"""Running numbers: rows that came twice are known, and so are rows that never came."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

from penstock.pipeline.numbers import Gap, SeenNumbers, joined, sort_out
from tests.pipeline.rows import usage_frame, usage_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def numbers_in(rows: DataFrame) -> list[tuple[str, int]]:
    return sorted((row["front_end"], row["number"]) for row in rows.select("front_end", "number").collect())


def test_stretches_are_what_a_set_of_numbers_would_be() -> None:
    dice = random.Random(4711)
    seen, plain = SeenNumbers(), set[int]()
    for _ in range(200):
        first = dice.randrange(300)
        stretch = (first, first + dice.randrange(9))
        expected = {number for number in range(stretch[0], stretch[1] + 1) if number in plain}
        again = {number for low, high in seen.overlap("a", stretch) for number in range(low, high + 1)}
        assert again == expected
        seen.add("a", stretch)
        plain.update(range(stretch[0], stretch[1] + 1))
    assert seen.stretches["a"] == joined([(number, number) for number in plain])
    missing = {number for gap in seen.gaps() for number in range(gap.first, gap.last + 1)}
    assert missing == set(range(min(plain), max(plain))) - plain
    assert SeenNumbers.from_note(json.loads(seen.to_json())).stretches == seen.stretches


def test_new_rows_pass_as_they_are(spark: SparkSession) -> None:
    batch = usage_frame(spark, [usage_row(number) for number in range(1, 131)])
    found = sort_out(batch, "front_end", "number", SeenNumbers())
    assert (found.rows, found.repeated) == (130, 0)
    assert found.fresh is batch
    assert found.seen.stretches == {"front-1": [(1, 130)]}


def test_a_row_that_comes_twice_counts_once(spark: SparkSession) -> None:
    before = SeenNumbers({"front-1": [(1, 5)]})
    numbers = [4, 5, 6, 6, 7, 10]
    rows = [usage_row(number) for number in numbers] + [usage_row(5, front_end="front-2")]
    found = sort_out(usage_frame(spark, rows), "front_end", "number", before)
    assert numbers_in(found.fresh) == [("front-1", 6), ("front-1", 7), ("front-1", 10), ("front-2", 5)]
    assert (found.rows, found.repeated) == (4, 3)
    assert found.seen.gaps() == [Gap("front-1", 8, 9)]
    assert before.stretches == {"front-1": [(1, 5)]}, "what was seen before the batch is what it was"


def test_numbers_that_a_row_says_were_left_out_are_not_missing(spark: SparkSession) -> None:
    """After an unclean election rows go on with a number of the epoch; those before it are in another batch, or never came."""
    first = 7 << 36
    leap = "case when action = 'leap' then 501 end"
    rows = [usage_row(number) for number in (499, 500)]
    rows += [usage_row(first, action="leap"), usage_row(first + 1), usage_row(first + 3)]
    before = SeenNumbers({"front-1": [(1, 498), (505, 800)]})
    found = sort_out(usage_frame(spark, rows), "front_end", "number", before, leap)
    assert (found.rows, found.repeated) == (5, 0)
    assert found.seen.stretches == {"front-1": [(1, first + 1), (first + 3, first + 3)]}
    assert found.seen.gaps() == [Gap("front-1", first + 2, first + 2)]
    again = sort_out(usage_frame(spark, rows), "front_end", "number", found.seen, leap)
    assert (again.rows, again.repeated) == (0, 5)
