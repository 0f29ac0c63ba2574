"""What the ledger finds wrong: each finding names the queue, the partition, the message and its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs.ledger_messages import (
    CHANGE_BITS,
    KEYS,
    UNFOLLOWED,
    change_of,
    ending,
    has_ended,
    number_of,
)
from penstock.pipeline.jobs.ledger_tables import FINDING_COLUMNS
from penstock.pipeline.jobs.message_ids import message_id_column

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import Surroundings
    from penstock.pipeline.numbers import Gap

_CENSUS = (Change.QUEUE_DELETED, Change.STOOD, UNFOLLOWED)
"""Changes that name everything that is there: what they do not name is not."""
_WORDS = {int(change): change.name.lower().replace("_", " ") for change in Change}
GRACE_MS = 3_600_000
"""For how long a message may be there after its retention before it counts as lost."""
_EXPECTED_LAST = 1 << 62


def findings(known: DataFrame, rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """Everything that is wrong with these messages; `rows` are the changes they come from."""
    found = ended_twice(known).unionByName(delivered_after_end(known))
    found = found.unionByName(reordered(known)).unionByName(unsent(known))
    found = found.unionByName(missing_in_census(known, rows))
    return found.unionByName(overdue(known, rows, surroundings))


def ended_twice(known: DataFrame) -> DataFrame:
    """More than one final state. That it was followed no more is none where it was found standing again."""
    words = _words()
    text = sf.concat(
        sf.lit("it ended "),
        sf.col("finals").cast("string"),
        sf.lit(" times: first "),
        words[change_of("first_final")],
        sf.lit(", last "),
        words[change_of("last_final")],
    )
    return _finding(
        known.where("finals > greatest(begins, 1)"), "duplicate-end", number_of("last_final"), text
    )


def delivered_after_end(known: DataFrame) -> DataFrame:
    """Handed out although it was gone."""
    ended = sf.shiftright(ending(), CHANGE_BITS)
    wrong = known.where(has_ended() & (sf.col("last_lease") > ended))
    text = sf.concat(sf.lit("it was handed out after it was "), sf.lower(_words()[change_of("first_final")]))
    return _finding(wrong, "delivered-after-end", sf.col("last_lease"), text)


def unsent(known: DataFrame) -> DataFrame:
    """Something became of it, yet nothing says that it was ever sent."""
    text = sf.lit("there are changes of it, but none says that it was sent, arrived or stood there")
    return _finding(known.where("begins = 0 and told = 0"), "unsent", number_of("last"), text)


def reordered(known: DataFrame) -> DataFrame:
    """Handed out while an earlier message of its group was there and had not been handed out.

    A message stops being in the way with the change that hands it out first or ends it. So in the order of numbers, none
    of a group may have been handed out before the latest of those that stand before it stopped being in the way.
    """
    strict = known.where("ordering = 1")
    freed = sf.least(
        sf.coalesce("first_lease", sf.lit(_EXPECTED_LAST)),
        sf.coalesce(number_of("first_final"), sf.lit(_EXPECTED_LAST)),
    )
    before = (
        Window.partitionBy("partition_id", "group_hash")
        .orderBy("sequence")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    latest = sf.max(sf.struct(freed.alias("freed"), sf.col("sequence"))).over(before)
    wrong = strict.withColumn("in_the_way", latest).where(
        sf.col("newly_leased") & (sf.col("in_the_way.freed") > sf.col("first_lease"))
    )
    text = sf.concat(
        sf.lit("it was handed out before message "),
        sf.col("in_the_way.sequence").cast("string"),
        sf.lit(" of its group, which was sent earlier and was still there"),
    )
    return _finding(wrong, "reordered", sf.col("first_lease"), text)


def missing_in_census(known: DataFrame, rows: DataFrame) -> DataFrame:
    """Not at an end, and not among everything that was there when the partition counted."""
    census = (
        rows.where(sf.col("change").isin(*map(int, _CENSUS)))
        .groupBy("partition_id", "change", "time")
        .agg(sf.min("number").alias("counted"))
        .groupBy("partition_id")
        .agg(sf.max("counted").alias("counted"))
    )
    wrong = known.join(sf.broadcast(census), "partition_id").where(
        ~has_ended()
        & (sf.col("told") == 0)
        & (number_of("last") < sf.col("counted"))
        & (change_of("last") != int(Change.MOVE_STARTED))
    )
    text = sf.lit("it was sent and never ended, and it is not among what the partition had later")
    return _finding(wrong, "lost", number_of("last"), text)


def overdue(known: DataFrame, rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """Still there long after its retention is over, as of the youngest row: how it ended may not have been read yet."""
    kept = [(str(one["name"]), int(one["retention_ms"])) for one in surroundings.queues]
    limits = known.sparkSession.createDataFrame(kept, "queue string, retention_ms long")
    youngest = rows.agg(sf.max(sf.unix_micros("time")).alias("youngest_us"))
    as_of = sf.least(sf.lit(surroundings.now_us), sf.col("youngest_us"))
    latest_us = as_of - 1000 * (sf.col("retention_ms") + GRACE_MS)
    joined = known.join(sf.broadcast(limits), "queue").crossJoin(sf.broadcast(youngest))
    wrong = joined.where(~has_ended() & (sf.col("told") == 0) & (sf.col("began_us") < latest_us))
    text = sf.lit("its retention is over, yet it neither ended nor expired")
    return _finding(wrong, "lost", number_of("last"), text)


def never_arrived(known: DataFrame, rows: DataFrame) -> DataFrame:
    """Moved to another queue that is followed, and never seen there. Only all rows together can tell."""
    followed = rows.select(sf.col("queue").alias("other_queue")).distinct()
    moved = rows.where(sf.col("change") == int(Change.MOVE_FINISHED)).join(
        followed, "other_queue", "left_semi"
    )
    arrived = rows.where(sf.col("change") == int(Change.ARRIVED)).select(
        sf.col("other_partition_id").alias("partition_id"),
        sf.explode(sf.sequence("other_first", sf.col("other_first") + sf.col("count") - 1)).alias("sequence"),
    )
    left = moved.select(
        "partition_id",
        sf.explode(sf.sequence("first", sf.col("first") + sf.col("count") - 1)).alias("sequence"),
    ).join(arrived, ["partition_id", "sequence"], "left_anti")
    gone = known.join(left, ["partition_id", "sequence"], "left_semi")
    text = sf.lit("it moved to another queue, where it never arrived")
    return _finding(gone, "never-arrived", number_of("last"), text)


def gap_findings(rows: DataFrame, gaps: tuple[Gap, ...]) -> DataFrame:
    """Changes that were lost before they reached the log; `rows` tell which queue a partition is of."""
    found = [(int(gap.writer), gap.first, gap.missing) for gap in gaps]
    missing = rows.sparkSession.createDataFrame(found, "partition_id long, number long, missing long")
    names = rows.groupBy(*KEYS[:-1]).agg(sf.max("time").alias("time"))
    text = sf.concat(
        sf.col("missing").cast("string"),
        sf.lit(" changes from this one on were lost on their way: what they said of messages is not known"),
    )
    return (
        missing.join(names, "partition_id", "left")
        .withColumn("explanation", text)
        .select(
            sf.lit("gap").alias("kind"),
            *KEYS[:-1],
            sf.lit(None).cast("long").alias("sequence"),
            sf.lit(None).cast("string").alias("message_id"),
            "number",
            "time",
            "explanation",
        )
    )


def _finding(wrong: DataFrame, kind: str, number: Column, text: Column) -> DataFrame:
    changed = sf.greatest("began_us", "leased_us", "ended_us")
    return wrong.select(
        sf.lit(kind).alias("kind"),
        *KEYS,
        sf.when(sf.col("sent") > 0, message_id_column("queue_id", "partition", "sequence")).alias(
            "message_id"
        ),
        number.alias("number"),
        sf.timestamp_micros(changed).alias("time"),
        text.alias("explanation"),
    ).select(*FINDING_COLUMNS)


def _words() -> Column:
    pairs = [sf.lit(part) for pair in {**_WORDS, UNFOLLOWED: "unfollowed"}.items() for part in pair]
    return sf.create_map(*pairs)
