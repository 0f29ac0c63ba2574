"""What the ledger does not know: changes whose rows never reached the log, and what they may have said.

Numbers tell which rows are missing. A message may have begun, been handed out or ended in them, so nothing is concluded
from not having seen that. A gap is one finding, which says whose messages it is about; none of them is accused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs.ledger_messages import KEYS
from penstock.pipeline.jobs.ledger_tables import FINDING_COLUMNS
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import Gap

DOUBTS = ("gap_first", "gap_last", "sure_from")
"""Of a message's partition: the first number that is missing, the first of its last gap, and the first message that
certainly began after that. All are null where nothing is missing."""


class Extent(NamedTuple):
    """All gaps of a partition, as far as it matters."""

    partition_id: int
    gap_first: int
    """Before this number everything is known."""
    gap_last: int
    """The first number of the last gap."""
    known_from: int
    """From this number on everything is known."""


def extents(gaps: Sequence[Gap]) -> list[Extent]:
    """One for each partition that has gaps."""
    found: dict[int, Extent] = {}
    for gap in gaps:
        partition_id = int(gap.writer)
        known = found.get(partition_id, Extent(partition_id, gap.first, gap.first, gap.last + 1))
        found[partition_id] = Extent(
            partition_id,
            min(known.gap_first, gap.first),
            max(known.gap_last, gap.first),
            max(known.known_from, gap.last + 1),
        )
    return [found[partition_id] for partition_id in sorted(found)]


def with_doubts(known: DataFrame, history: DataFrame, gaps: Sequence[Gap]) -> DataFrame:
    """Messages with what is not known of their partition; `history` are all rows. Those that may have begun in a gap
    count as told: that nothing says where they come from is no finding.
    """
    if not gaps:  # as it should be: then nothing is looked up
        nothing = sf.lit(None).cast("long")
        return known.withColumns(dict.fromkeys(DOUBTS, nothing))
    rows = local_rows(known.sparkSession, extents(gaps), _EXTENT)
    sure = (
        history.where(_enters())
        .join(sf.broadcast(rows), "partition_id")
        .where(sf.col("number") >= sf.col("known_from"))
        .groupBy("partition_id")
        .agg(sf.min("first").alias("sure_from"))
    )
    doubts = rows.join(sf.broadcast(sure), "partition_id", "left").drop("known_from")
    begun_unseen = (
        (sf.col("begins") == 0)
        & sf.col("gap_last").isNotNull()
        & (sf.col("sure_from").isNull() | (sf.col("sequence") < sf.col("sure_from")))
    )
    return known.join(sf.broadcast(doubts), "partition_id", "left").withColumn(
        "told", sf.when(begun_unseen, sf.lit(1).cast("long")).otherwise(sf.col("told"))
    )


def gap_findings(rows: DataFrame, gaps: Sequence[Gap]) -> DataFrame:
    """One for each gap: how much is missing, and of which messages it may have been; `rows` are all there are."""
    missing = local_rows(rows.sparkSession, [(int(gap.writer), gap.first, gap.last) for gap in gaps], _GAP)
    before, after = sf.col("number") < sf.col("gap_start"), sf.col("number") > sf.col("gap_end")
    around = (
        rows.join(sf.broadcast(missing), "partition_id")
        .groupBy(*KEYS[:-1], "gap_start", "gap_end")
        .agg(
            sf.max(sf.when(before, sf.col("time"))).alias("time"),
            sf.max(sf.when(before & _enters(), sf.col("first") + sf.col("count") - 1)).alias("begun_before"),
            sf.min(sf.when(after & _enters(), sf.col("first"))).alias("begun_after"),
        )
    )
    return around.select(
        sf.lit("gap").alias("kind"),
        *KEYS[:-1],
        sf.lit(None).cast("long").alias("sequence"),
        sf.lit(None).cast("string").alias("message_id"),
        sf.col("gap_start").alias("number"),
        "time",
        _explanation().alias("explanation"),
    ).select(*FINDING_COLUMNS)


def _explanation() -> Column:
    """What is missing, who may have begun in it, and who may have ended in it."""
    count = sf.col("gap_end") - sf.col("gap_start") + 1
    one = sf.lit("change {} never reached the log, so what it said is not known")
    several = sf.lit("{} changes, {} to {}, never reached the log, so what they said is not known")
    missing = sf.when(count == 1, _filled(one, "gap_start")).otherwise(
        _filled(several, count, "gap_start", "gap_end")
    )
    first = sf.coalesce(sf.col("begun_before"), sf.lit(0)) + 1
    last = sf.col("begun_after") - 1
    begun = (
        sf.when(last.isNull(), _filled(sf.lit("; messages from {} on may have begun there"), first))
        .when(last == first, _filled(sf.lit("; message {} began there"), first))
        .when(last > first, _filled(sf.lit("; messages {} to {} began there"), first, last))
        .otherwise("")
    )
    ended = sf.when(
        first > 1, _filled(sf.lit("; messages up to {} may have been handed out or ended there"), first - 1)
    ).otherwise("")
    return sf.concat(missing, begun, ended)


def _filled(text: Column, *values: Column | str) -> Column:
    """The values, in their order, for the braces of a text."""
    for value in values:
        column = sf.col(value) if isinstance(value, str) else value
        parts = sf.split(text, r"\{\}", 2)
        text = sf.concat(parts[0], column.cast("string"), parts[1])
    return text


def _enters() -> Column:
    return sf.col("change").isin(int(Change.SENT), int(Change.ARRIVED))


_EXTENT = "partition_id long, gap_first long, gap_last long, known_from long"
_GAP = "partition_id long, gap_start long, gap_end long"
