"""The job `dead-letters`: why messages die, by queue, reason, consumer and what consumers said, hour by hour."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE, Change
from penstock.pipeline.jobs.fingerprint import fingerprint
from penstock.pipeline.jobs.job import Job, Reader, Rolled, Surroundings, Tables, gap_table
from penstock.pipeline.jobs.message_ids import message_id_column
from penstock.pipeline.warehouse.table import WarehouseTable, column

SAMPLES = 3
_LOOK_BACK = timedelta(days=14)
"""A message that died was handed out within the longest retention before."""
_NOT_DEATHS = ("redrive",)

ROWS = WarehouseTable(
    "dead_letter_rows",
    "Deaths, and the deliveries and failures that may explain them, as the partitions reported them.",
    "batches",
    (
        column("time", "timestamp", "When it happened."),
        column("queue", "string", "The queue's name."),
        column("queue_id", "int64", "Its incarnation."),
        column("partition", "int32", "Which partition of the queue."),
        column("partition_id", "int64", "The partition's own id."),
        column("number", "int64", "The partition's own count of changes."),
        column("kind", "string", "death, delivery or failure."),
        column("first", "int64", "The first message of the run."),
        column("count", "int32", "How many messages it has."),
        column("reason", "string", "Of a death why; of a failure how the lease ended."),
        column("consumer", "string", "Of a delivery to whom, as far as it is known."),
        column("error", "string", "Of a failure what the consumer said."),
        column("receives", "int32", "Of a death how often the messages were received at most."),
        column("other_queue", "string", "Of a death the queue they went to; empty: they are gone."),
    ),
    by_day=True,
)

_CAUSE = (
    column("queue", "string", "The queue in which they died."),
    column("reason", "string", "max-receives, expired, overflow, late, queue-deleted, dropped or ttl."),
    column("consumer", "string", "Who had them last; empty: nobody known."),
    column("fingerprint", "string", "What that consumer said, without numbers, ids and quoted text."),
)
HOURS = WarehouseTable(
    "dead_letters",
    "Messages that died, by hour and cause, with samples.",
    "days",
    (
        column("hour", "timestamp", "The hour, by its beginning."),
        *_CAUSE,
        column("messages", "int64", "How many died."),
        column("receives_max", "int64", "How often one of them was received at most."),
        column("dead_letter_queue", "string", "Where they went; empty: they are gone."),
        column("samples", "samples", f"Up to {SAMPLES} of them: message_id, partition, sequence, error."),
    ),
    by_day=True,
)
CAUSES = WarehouseTable(
    "dead_letter_causes",
    "Causes of death over all time, with their trend: the last day beside the day before.",
    "whole",
    (
        *_CAUSE,
        column("messages", "int64", "How many died of it."),
        column("last_day", "int64", "In the 24 hours up to the last death of all."),
        column("day_before", "int64", "In the 24 hours before those."),
        column("first_hour", "timestamp", "The hour in which it was first seen."),
        column("last_hour", "timestamp", "The hour in which it was last seen."),
    ),
)
GAPS = gap_table("dead_letter_gaps", "partition_id", "The partition that numbered them.")


def of_interest(rows: DataFrame) -> DataFrame:
    """Deaths, deliveries to known consumers, and failures.

    A move is a death when it is finished: one that was abandoned is tried again, and the message may live on.
    """
    change, reason = sf.col("change"), sf.col("reason")
    moved = (change == int(Change.MOVE_FINISHED)) & ~reason.isin(*_NOT_DEATHS)
    kind = (
        sf.when(moved, "death")
        .when(change == int(Change.DROPPED), "death")
        .when((change == int(Change.EXPIRED)) & (reason == "ttl"), "death")
        .when((change == int(Change.LEASED)) & sf.col("consumer").isNotNull(), "delivery")
        .when((change == int(Change.RELEASED)) & sf.col("error").isNotNull(), "failure")
    )
    return (
        rows.withColumn("kind", kind)
        .where(sf.col("kind").isNotNull())
        .withColumn("reason", sf.when(change == int(Change.DROPPED), "dropped").otherwise(reason))
        .withColumn("day", sf.to_date("time"))
    )


def deaths_explained(deaths: DataFrame, others: DataFrame) -> DataFrame:
    """One row a dead message: with its last consumer, and the last error that was said of it."""
    dead = _single(deaths.where("kind = 'death'")).withColumnRenamed("number", "died")
    bounds = dead.groupBy("partition_id").agg(
        sf.min("sequence").alias("lowest"), sf.max("sequence").alias("highest")
    )
    near = (
        others.where("kind <> 'death'")
        .join(sf.broadcast(bounds), "partition_id")
        .where(
            (sf.col("first") <= sf.col("highest")) & (sf.col("first") + sf.col("count") > sf.col("lowest"))
        )
    )
    known = _single(near).select("partition_id", "sequence", "number", "consumer", "error")
    last = (
        dead.select("partition_id", "sequence", "died")
        .join(known, ["partition_id", "sequence"])
        .where(sf.col("number") < sf.col("died"))
        .groupBy("partition_id", "sequence", "died")
        .agg(
            sf.max_by("consumer", sf.when(sf.col("consumer").isNotNull(), sf.col("number"))).alias(
                "consumer"
            ),
            sf.max_by("error", sf.when(sf.col("error").isNotNull(), sf.col("number"))).alias("error"),
        )
    )
    return (
        dead.drop("consumer", "error")
        .join(last, ["partition_id", "sequence", "died"], "left")
        .withColumns(
            {"consumer": sf.coalesce("consumer", sf.lit("")), "fingerprint": fingerprint(sf.col("error"))}
        )
    )


def by_hour(dead: DataFrame) -> DataFrame:
    """Dead messages counted by hour and cause, the first few of each as samples."""
    cause = ["hour", "queue", "reason", "consumer", "fingerprint"]
    timed = dead.withColumn("hour", sf.date_trunc("hour", "time"))
    place = sf.row_number().over(Window.partitionBy(*cause).orderBy("time", "partition_id", "sequence"))
    sample = sf.struct(
        message_id_column("queue_id", "partition", "sequence").alias("message_id"),
        "partition",
        "sequence",
        "error",
    )
    return (
        timed.withColumn("place", place)
        .groupBy(*cause)
        .agg(
            sf.count(sf.lit(1)).alias("messages"),
            sf.max("receives").alias("receives_max"),
            sf.max(sf.coalesce("other_queue", sf.lit(""))).alias("dead_letter_queue"),
            sf.collect_list(sf.when(sf.col("place") <= SAMPLES, sample)).alias("samples"),
        )
        .withColumn("day", sf.to_date("hour"))
    )


def causes(hours: DataFrame) -> DataFrame:
    """Hours added up by cause, with their trend."""
    latest = hours.agg(sf.max("hour").alias("latest"))
    age = (sf.unix_timestamp("latest") - sf.unix_timestamp("hour")) / 3600
    messages = sf.col("messages")
    return (
        hours.crossJoin(sf.broadcast(latest))
        .groupBy("queue", "reason", "consumer", "fingerprint")
        .agg(
            sf.sum("messages").alias("messages"),
            sf.sum(sf.when(age < 24, messages).otherwise(0)).alias("last_day"),
            sf.sum(sf.when((age >= 24) & (age < 48), messages).otherwise(0)).alias("day_before"),
            sf.min("hour").alias("first_hour"),
            sf.max("hour").alias("last_hour"),
        )
        .orderBy(sf.desc("last_day"), sf.desc("messages"))
    )


def _single(rows: DataFrame) -> DataFrame:
    sequences = sf.sequence("first", sf.col("first") + sf.col("count") - 1)
    return rows.withColumn("sequence", sf.explode(sequences))


def _batch(rows: DataFrame) -> Tables:
    return {ROWS.name: of_interest(rows)}


def _roll(reader: Reader, surroundings: Surroundings) -> Rolled:
    died = reader.new_rows(ROWS).where("kind = 'death'").select("day").distinct().collect()
    days = sorted(row["day"] for row in died)
    if not days:
        return Rolled()
    recent = reader.all_rows(ROWS).where(
        (sf.col("day") >= sf.lit(days[0] - _LOOK_BACK)) & (sf.col("day") <= sf.lit(days[-1]))
    )
    dead = deaths_explained(recent.where(sf.col("day").isin(*days)), recent)
    hours = by_hour(dead).persist()
    others = reader.all_rows(HOURS).where(~sf.col("day").isin(*days))
    names = list(HOURS.names)
    everything = others.select(*names).unionByName(hours.select(*names))
    return Rolled(days={HOURS.name: (days, hours)}, whole={CAUSES.name: causes(everything)}, kept=(hours,))


JOB = Job(
    name="dead-letters",
    sentence="Why messages die: by queue, reason, consumer and error, with samples and the trend by hour.",
    queue=LIFECYCLE_QUEUE,
    rows=LIFECYCLE,
    writer="partition_id",
    tables=(HOURS, CAUSES, GAPS, ROWS),
    batch=_batch,
    roll=_roll,
)
