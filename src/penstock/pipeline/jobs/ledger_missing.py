"""Messages that did not end and cannot be there any more: what a partition counted, and what retention leaves nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.columnar.lifecycle import CENSUS, Change
from penstock.pipeline.jobs.ledger_messages import change_of, has_ended, number_of
from penstock.pipeline.local_rows import local_rows

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import Surroundings

GRACE_MS = 3_600_000
"""For how long a message may be there after its retention before it counts as lost."""
NOT_COUNTED, OVERDUE = "not-counted", "overdue"
COLUMNS = ("missing", "doubted")
"""Why a message cannot be there any more, null where it can; and whether it may have ended in a gap, unseen."""


def with_missing(known: DataFrame, rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """Messages, which have their doubts, with these columns; `rows` are the changes they come from."""
    counted = known.join(sf.broadcast(censuses(rows, surroundings)), "partition_id", "left")
    limited = counted.join(sf.broadcast(_limits(rows, surroundings)), ["partition_id", "queue"], "left")
    # A message on its way elsewhere is in nobody's hands: it stays until it has arrived or has come back.
    stays = ~has_ended() & (change_of("last") != int(Change.MOVE_STARTED))
    last = number_of("last")
    uncounted = stays & (last < sf.col("census_first"))
    overdue = stays & (sf.col("began_us") < sf.col("overdue_us"))
    doubted = sf.when(uncounted, sf.col("census_gap") > last).when(overdue, sf.col("gap_last") > last)
    return limited.withColumns(
        {
            "missing": sf.when(uncounted, NOT_COUNTED).when(overdue, OVERDUE),
            "doubted": sf.coalesce(doubted, sf.lit(False)),
        }
    ).drop("census_first", "census_gap", "overdue_us")


def censuses(rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """Of each partition the last census of which the last row is there: where it begins, and the last gap before its end.

    A census of many rows comes in several reports, and a roll-up may see the first of them only. Then nothing is
    concluded: the roll-up that sees its last row does, since what was named before that ended or stands by its number.
    """
    complete = (
        rows.where(sf.col("change").isin(*map(int, CENSUS)) & (sf.col("number") == sf.col("census_last")))
        .groupBy("partition_id")
        .agg(sf.max(sf.struct("census_last", "census_first")).alias("census"))
        .select("partition_id", "census.census_last", "census.census_first")
    )
    if not surroundings.gaps:
        return complete.drop("census_last").withColumn("census_gap", sf.lit(None).cast("long"))
    starts = [(int(gap.writer), gap.first) for gap in surroundings.gaps]
    gaps = local_rows(rows.sparkSession, starts, "partition_id long, gap_start long")
    within = sf.when(sf.col("gap_start") < sf.col("census_last"), sf.col("gap_start"))
    return (
        complete.join(sf.broadcast(gaps), "partition_id", "left")
        .groupBy("partition_id", "census_first")
        .agg(sf.max(within).alias("census_gap"))
    )


def _limits(rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """Before when a message must have begun to be overdue, by partition.

    As of the partition's own youngest row: how its messages ended since may not have been read, and a partition that
    is away cannot say it at all. Retention is that of the very queue, not of another that has its name now.
    """
    kept = [(str(one["name"]), one.get("queue_id"), int(one["retention_ms"])) for one in surroundings.queues]
    queues = local_rows(rows.sparkSession, kept, "queue string, same_id long, retention_ms long")
    youngest = rows.groupBy("partition_id", "queue", "queue_id").agg(
        sf.max(sf.unix_micros("time")).alias("youngest_us")
    )
    as_of = sf.least(sf.lit(surroundings.now_us), sf.col("youngest_us"))
    return (
        youngest.join(sf.broadcast(queues), "queue")
        .where(sf.coalesce(sf.col("same_id") == sf.col("queue_id"), sf.lit(True)))
        .select(
            "partition_id",
            "queue",
            (as_of - 1000 * (sf.col("retention_ms") + GRACE_MS)).alias("overdue_us"),
        )
    )
