"""What the ledger finds wrong: each finding names the queue, the partition, the message and its number."""

from __future__ import annotations

from datetime import timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs.ledger_messages import (
    KEYS,
    UNFOLLOWED,
    change_of,
    number_of,
)
from penstock.pipeline.jobs.ledger_missing import GRACE_MS, OVERDUE
from penstock.pipeline.jobs.ledger_tables import FINDING_COLUMNS
from penstock.pipeline.jobs.message_ids import message_id_column

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import Surroundings

_WORDS = {int(change): change.name.lower().replace("_", " ") for change in Change}
_MOVING_TIME = timedelta(minutes=1)
"""A move that ends within this time after a queue is followed may have arrived before."""


def findings(known: DataFrame) -> DataFrame:
    """Everything that is wrong with these messages, which have their doubts and what is missing; without their ids."""
    checks = (ended_twice(), delivered_after_end(), unsent(), lost())
    suspects = known.where(reduce(or_, (sf.coalesce(check.wrong, sf.lit(False)) for check in checks)))
    # One pass over the messages for all checks: a pass each would go through all rows as often.
    each = sf.explode(sf.array_compact(sf.array(*(check.found() for check in checks))))
    return _told(suspects.withColumn("found", each)).unionByName(reordered(known))


class Check(NamedTuple):
    """When a message is a finding, and what it says then."""

    kind: str
    wrong: Column
    number: Column
    text: Column

    def found(self) -> Column:
        """Null where nothing is wrong."""
        finding = sf.struct(
            sf.lit(self.kind).alias("kind"),
            self.number.cast("long").alias("number"),
            self.text.alias("explanation"),
        )
        return sf.when(self.wrong, finding)


def ended_twice() -> Check:
    """More than one final state. That a queue is followed no more is none: the message lives on."""
    words = _words()
    text = sf.concat(
        sf.lit("it ended "),
        sf.col("finals").cast("string"),
        sf.lit(" times: first "),
        words[change_of("first_final")],
        sf.lit(", last "),
        words[change_of("last_final")],
    )
    return Check("duplicate-end", sf.col("finals") > 1, number_of("last_final"), text)


def delivered_after_end() -> Check:
    """Handed out although it was gone."""
    wrong = sf.col("last_lease") > number_of("first_final")
    text = sf.concat(sf.lit("it was handed out after it was "), _words()[change_of("first_final")])
    return Check("delivered-after-end", wrong, sf.col("last_lease"), text)


def unsent() -> Check:
    """Something became of it, yet nothing says that it was ever sent."""
    wrong = (sf.col("begins") == 0) & (sf.col("told") == 0)
    text = sf.lit("there are changes of it, but none says that it was sent, arrived or stood there")
    return Check("unsent", wrong, number_of("last"), text)


def lost() -> Check:
    """It never ended and cannot be there any more; unless rows are missing that may have told its end."""
    wrong = sf.col("missing").isNotNull() & ~sf.col("doubted") & (sf.col("told") == 0)
    text = sf.when(
        sf.col("missing") == OVERDUE, "its retention is over, yet it neither ended nor expired"
    ).otherwise("it was sent and never ended, and it is not among what the partition had later")
    return Check("lost", wrong, number_of("last"), text)


def reordered(known: DataFrame) -> DataFrame:
    """Handed out while an earlier message of its group was there and had not been handed out.

    A message stops being in the way with the change that hands it out first or ends it. So in the order of numbers, none
    of a group may have been handed out before the latest of those that stand before it stopped being in the way.
    """
    strict = known.where("ordering > 0")
    freed = sf.least("first_lease", number_of("first_final"), "ordering")
    before = (
        Window.partitionBy("partition_id", "group_hash")
        .orderBy("sequence")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    stopped = sf.struct(freed.alias("freed"), sf.col("sequence"))
    # What came before a gap may have been handed out in it: after one only messages are looked at that came later.
    surely = sf.col("gap_first").isNull() | (sf.col("sequence") >= sf.col("sure_from"))
    in_the_way = sf.when(sf.col("first_lease") < sf.col("gap_first"), sf.max(stopped).over(before)).otherwise(
        sf.max(sf.when(surely, stopped)).over(before)
    )
    wrong = strict.withColumn("in_the_way", in_the_way).where(
        sf.col("newly_leased")
        & (sf.col("first_lease") < sf.col("ordering"))
        & (sf.col("in_the_way.freed") > sf.col("first_lease"))
    )
    text = sf.concat(
        sf.lit("it was handed out before message "),
        sf.col("in_the_way.sequence").cast("string"),
        sf.lit(" of its group, which was sent earlier and was still there"),
    )
    always = Check("reordered", sf.lit(True), sf.col("first_lease"), text)
    return _told(wrong.withColumn("found", always.found()))


def never_arrived(known: DataFrame, rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """Moved to another queue that is followed, and never seen there. Only all rows together can tell."""
    moved = rows.where(sf.col("change") == int(Change.MOVE_FINISHED)).join(
        sf.broadcast(_watched(rows, surroundings)), "other_queue"
    )
    told_by_now = (sf.col("time") < sf.col("heard_until")) | (
        sf.unix_micros("time") < surroundings.now_us - 1000 * GRACE_MS
    )
    arrived = rows.where(sf.col("change") == int(Change.ARRIVED)).select(
        sf.col("other_partition_id").alias("partition_id"),
        sf.explode(sf.sequence("other_first", sf.col("other_first") + sf.col("count") - 1)).alias("sequence"),
    )
    left = (
        moved.where((sf.col("time") >= sf.col("watched_from")) & told_by_now)
        .select(
            "partition_id",
            sf.explode(sf.sequence("first", sf.col("first") + sf.col("count") - 1)).alias("sequence"),
        )
        .join(arrived, ["partition_id", "sequence"], "left_anti")
    )
    gone = known.join(left, ["partition_id", "sequence"], "left_semi")
    text = sf.lit("it moved to another queue, where it never arrived")
    always = Check("never-arrived", sf.lit(True), number_of("last"), text)
    return _told(gone.withColumn("found", always.found()))


def _watched(rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """Queues where no arrival can have gone unseen, from when on, and until when they were heard of.

    Not those that were followed no more for a time or made anew, nor those of which rows are missing.
    """
    change, gaps = sf.col("change"), [int(gap.writer) for gap in surroundings.gaps]
    partitions = rows.groupBy("queue", "partition_id", "queue_id").agg(
        sf.min("time").alias("begun"),
        sf.max("time").alias("heard_until"),
        (sf.max(sf.when(change == int(Change.STOOD), sf.col("time"))) + sf.lit(_MOVING_TIME)).alias("stood"),
        sf.max(change == UNFOLLOWED).alias("interrupted"),
        ((sf.min("number") > 1) | sf.max(sf.col("partition_id").isin(gaps))).alias("incomplete"),
    )
    return (
        partitions.groupBy(sf.col("queue").alias("other_queue"))
        .agg(
            sf.greatest(sf.min("begun"), sf.max("stood")).alias("watched_from"),
            sf.max("heard_until").alias("heard_until"),
            sf.max(sf.col("interrupted") | sf.col("incomplete")).alias("unsure"),
            sf.count_distinct("queue_id").alias("incarnations"),
        )
        .where("not unsure and incarnations = 1")
    )


def with_message_ids(found: DataFrame) -> DataFrame:
    """Findings as the table has them."""
    identity = message_id_column("queue_id", "partition", "sequence")
    return found.withColumn("message_id", sf.when(sf.col("sent") > 0, identity)).select(*FINDING_COLUMNS)


def _told(wrong: DataFrame) -> DataFrame:
    changed = sf.greatest("began_us", "leased_us", "ended_us")
    return wrong.select(
        "found.kind",
        *KEYS,
        "found.number",
        sf.timestamp_micros(changed).alias("time"),
        "found.explanation",
        "sent",
    )


def _words() -> Column:
    pairs = [sf.lit(part) for pair in _WORDS.items() for part in pair]
    return sf.create_map(*pairs)
