"""Messages of queues that are gone: nothing more will be heard of them, and their last rows never came.

A queue that is deleted says what became of everything that was left. In a cluster nobody may be left to say it: then its
messages would stand in the ledger for ever. That a queue is gone the server tells who asks for it; but its last rows may be on
their way, and the job may be far behind. So it is written down when a queue was first missed, and concluded from that only when
rows were read that are an hour younger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.model.errors import PenstockError
from penstock.model.internal_queues import INTERNAL_PREFIX
from penstock.pipeline.jobs.ledger_messages import KEYS, has_ended, number_of
from penstock.pipeline.jobs.ledger_missing import GRACE_MS
from penstock.pipeline.jobs.ledger_tables import FINDING_COLUMNS

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import Surroundings

_ASKED_AT_ONCE = 1_000


class Absence(NamedTuple):
    """What a roll-up knows of queues that are gone."""

    queue_ids: frozenset[int] | None = None
    """Those that the server has no more, as it says now; None: it could not be asked."""
    now_us: int = 0
    heard_us: int | None = None
    """How young the new rows are; None where no queue was missed before, and it does not matter."""


NOT_ASKED = Absence()


def absence(rows: DataFrame, state: DataFrame, surroundings: Surroundings) -> Absence:
    """Asks the server for the queues of messages that had not ended, where it has not named them; `rows` are the new ones."""
    if surroundings.missing_of is None:
        return NOT_ASKED
    named = {queue.get("queue_id") for queue in surroundings.queues}
    queues = state.groupBy("queue", "queue_id").agg(sf.min("gone_us").alias("gone_us")).collect()
    unnamed = [
        (row["queue"], row["queue_id"])
        for row in queues
        if row["queue_id"] not in named and not row["queue"].startswith(INTERNAL_PREFIX)
    ]
    try:
        missing = surroundings.missing_of(unnamed[:_ASKED_AT_ONCE]) if unnamed else frozenset()
    except PenstockError:  # it was there a moment ago
        return NOT_ASKED
    if all(row["gone_us"] is None for row in queues):
        return Absence(missing, surroundings.now_us)
    youngest = rows.agg(sf.max(sf.unix_micros("time"))).first()
    return Absence(missing, surroundings.now_us, None if youngest is None else youngest[0])


def with_gone(known: DataFrame, absence: Absence) -> DataFrame:
    """Messages with when their queue was first missed (`gone_us`), and whether that is certain by now (`gone`)."""
    queue_ids, now_us, heard_us = absence
    if queue_ids is None:
        return known.withColumn("gone", sf.lit(False))
    if not queue_ids:
        return known.withColumns({"gone_us": sf.lit(None).cast("long"), "gone": sf.lit(False)})
    missed = sf.col("queue_id").isin(*queue_ids) & ~has_ended()
    late = sf.col("gone_us") + 1000 * GRACE_MS <= (0 if heard_us is None else heard_us)
    return known.withColumns(
        {
            "gone_us": sf.when(missed, sf.coalesce("gone_us", sf.lit(now_us))).cast("long"),
            "gone": sf.coalesce(missed & late, sf.lit(False)),
        }
    )


def gone_findings(known: DataFrame) -> DataFrame:
    """One for each partition of a queue that is gone: how many messages nobody knows the end of. Those told of before are not
    told of again."""
    partitions = (
        known.where("gone and told = 0")
        .groupBy(*KEYS[:-1])
        .agg(
            sf.count(sf.lit(1)).alias("left"),
            sf.min("sequence").alias("first"),
            sf.max("sequence").alias("last_one"),
            sf.max(number_of("last")).alias("number"),
            sf.max(sf.greatest("began_us", "leased_us")).alias("changed_us"),
        )
    )
    text = sf.concat(
        sf.lit("the queue is gone, and rows about its end never came: nobody knows how "),
        sf.col("left").cast("string"),
        sf.lit(" messages ended that were there, "),
        sf.col("first").cast("string"),
        sf.lit(" to "),
        sf.col("last_one").cast("string"),
    )
    return partitions.select(
        sf.lit("queue-gone").alias("kind"),
        *KEYS[:-1],
        sf.lit(None).cast("long").alias("sequence"),
        sf.lit(None).cast("string").alias("message_id"),
        "number",
        sf.timestamp_micros("changed_us").alias("time"),
        text.alias("explanation"),
    ).select(*FINDING_COLUMNS)
