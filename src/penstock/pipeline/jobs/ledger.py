"""The job `ledger`: every acknowledged send ends in exactly one way, or is still there; and what is otherwise.

Batches keep the rows as they are. A roll-up adds the new ones to what was known of messages that had not ended (`STATE`),
counts those that have ended now, and reports what cannot be. `check_everything` does the same from all rows at once.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE, Change
from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.job import Job, Reader, Rolled, Surroundings, Tables
from penstock.pipeline.jobs.ledger_findings import findings, never_arrived, with_message_ids
from penstock.pipeline.jobs.ledger_gaps import gap_findings, with_doubts
from penstock.pipeline.jobs.ledger_gone import NOT_ASKED, Absence, absence, gone_findings, with_gone
from penstock.pipeline.jobs.ledger_messages import (
    BEGINNINGS,
    ENDED,
    KEYS,
    UNFOLLOWED,
    change_of,
    has_ended,
    messages,
    without_forgotten,
)
from penstock.pipeline.jobs.ledger_missing import with_missing
from penstock.pipeline.numbers import Gap

_STRANGE_AT_ONCE = 10_000


def new_messages(rows: DataFrame, state: DataFrame) -> DataFrame:
    """What is known of messages that rows speak of or that had not ended, and whether they were handed out just now."""
    before = state.where("first_lease is not null").select(
        "partition_id", "sequence", sf.lit(True).alias("was_leased")
    )
    known = messages(rows, state).join(before, ["partition_id", "sequence"], "left")
    newly = sf.col("first_lease").isNotNull() & sf.col("was_leased").isNull()
    return known.withColumns({"newly_leased": newly, "looked_up": sf.lit(False)}).drop("was_leased")


def ended_counts(known: DataFrame) -> DataFrame:
    """Messages that ended, by the hour in which that was, and queue; those looked up were counted before."""
    last = change_of("first_final")
    deleted = last == int(Change.DELETED)
    dwell = sf.floor((sf.col("ended_us") - sf.col("began_us")) / 1000)
    work = sf.when(deleted, sf.floor((sf.col("ended_us") - sf.col("leased_us")) / 1000))
    hour = sf.date_trunc("hour", sf.timestamp_micros("ended_us"))
    return (
        known.where((sf.col("finals") > 0) & (~sf.col("looked_up") | (sf.col("begins") == 0)))
        .select(
            hour.alias("hour"),
            "queue",
            last.alias("ending"),
            sf.greatest(sf.col("leases") - 1, sf.lit(0)).alias("again"),
            dwell.alias("dwell"),
            work.alias("work"),
        )
        .groupBy("hour", "queue")
        .agg(
            sf.lit(0).cast("long").alias("began"),
            sf.count(sf.lit(1)).alias("ended"),
            *(
                _counted(sf.col("ending") == int(change), name)
                for change, name in zip(ENDED, _ending_names(), strict=True)
            ),
            sf.sum("again").alias("redeliveries"),
            sf.max("dwell").alias("dwell_ms_max"),
            sf.max("work").alias("processing_ms_max"),
            *tables.DWELL.counted("dwell"),
            *tables.PROCESSING.counted("work"),
        )
    )


def begun_counts(rows: DataFrame) -> DataFrame:
    """Messages that began, and those that were followed no more, by hour and queue.

    A message that is found standing afterwards begins again, so that what began ended or is there still.
    """
    nothing, counted = sf.lit(0).cast("long"), ("began", "ended", "unfollowed")
    empty = [name for name in tables.COUNTS if name not in counted and not name.endswith("_max")]
    begins, leaves = sf.col("change").isin(*map(int, BEGINNINGS)), sf.col("change") == UNFOLLOWED
    count = sf.col("count").cast("long")
    return (
        rows.where((begins | leaves) & (count > 0))
        .groupBy(sf.date_trunc("hour", "time").alias("hour"), "queue")
        .agg(
            sf.sum(sf.when(begins, count).otherwise(0)).alias("began"),
            sf.sum(sf.when(leaves, count).otherwise(0)).alias("ended"),
            sf.sum(sf.when(leaves, count).otherwise(0)).alias("unfollowed"),
        )
        .select(
            "*",
            *(nothing.alias(name) for name in (*empty, *tables.DWELL.names, *tables.PROCESSING.names)),
            *(sf.lit(None).cast("long").alias(f"{kind}_ms_max") for kind in ("dwell", "processing")),
        )
    )


def by_hour(parts: DataFrame) -> DataFrame:
    """Counts added up, with percentiles."""
    largest = [name for name in tables.COUNTS if name.endswith("_max")]
    summed = [name for name in tables.COUNTS if name not in largest]
    total = {"dwell": sf.col("ended") - sf.col("unfollowed"), "processing": sf.col("deleted")}
    return (
        parts.groupBy("day", "hour", "queue")
        .agg(
            *(sf.sum(name).alias(name) for name in summed),
            *(sf.max(name).alias(name) for name in largest),
            *tables.DWELL.added_up(),
            *tables.PROCESSING.added_up(),
        )
        .withColumns(
            {
                f"{buckets.prefix}_ms_p{percent}": buckets.percentile(
                    percent / 100, total[buckets.prefix], sf.col(f"{buckets.prefix}_ms_max")
                )
                for buckets in (tables.DWELL, tables.PROCESSING)
                for percent in (50, 95, 99)
            }
        )
    )


def still_there() -> Column:
    """Not at an end, as far as anybody knows. What may have ended in a gap and cannot be there any more is not, nor what
    was in a queue that is gone."""
    return ~has_ended() & ~sf.col("gone") & ~(sf.col("missing").isNotNull() & sf.col("doubted"))


def judged(
    known: DataFrame,
    rows: DataFrame,
    history: DataFrame,
    surroundings: Surroundings,
    gone: Absence = NOT_ASKED,
) -> DataFrame:
    """Messages with what is not known of them, and what is missing; `rows` are the new ones, `history` all there are."""
    doubted = with_doubts(known, history, surroundings.gaps)
    return with_gone(with_missing(doubted, rows, surroundings), gone)


def open_messages(known: DataFrame) -> DataFrame:
    """Those that have not ended, for people."""
    last = change_of("last")
    state = (
        sf.when(last == int(Change.MOVE_STARTED), "moving")
        .when(last == int(Change.RELEASED), "released")
        .when(last.isin(int(Change.LEASED), int(Change.EXTENDED), int(Change.RESUMED)), "leased")
        .otherwise("waiting")
    )
    return known.where(still_there()).select(
        *KEYS,
        state.alias("state"),
        sf.timestamp_micros("began_us").alias("began"),
        sf.col("leases").alias("deliveries"),
    )


def check_everything(rows: DataFrame, surroundings: Surroundings) -> DataFrame:
    """All findings, from all rows at once."""
    known = judged(without_forgotten(messages(rows), rows), rows, rows, surroundings)
    known = known.withColumn("newly_leased", sf.col("first_lease").isNotNull())
    found = with_message_ids(findings(known).unionByName(never_arrived(known, rows, surroundings)))
    return found.unionByName(gap_findings(rows, surroundings.gaps)) if surroundings.gaps else found


def _batch(rows: DataFrame) -> Tables:
    return {tables.ROWS.name: rows}


def _roll(reader: Reader, surroundings: Surroundings) -> Rolled:
    rows = reader.new_rows(tables.ROWS)
    history = reader.all_rows(tables.ROWS)
    earlier = reader.all_rows(tables.STATE)
    known, strange = _with_history(new_messages(rows, earlier), history)
    known = judged(known, rows, history, surroundings, absence(rows, earlier, surroundings)).persist()
    found = with_message_ids(findings(known)).unionByName(gone_findings(known)).persist()
    new_gaps = _new_gaps(reader, surroundings)
    all_found = found.unionByName(gap_findings(history, new_gaps)) if new_gaps else found
    parts = (
        ended_counts(known).unionByName(begun_counts(rows)).withColumn("day", sf.to_date("hour")).persist()
    )
    days = sorted(row["day"] for row in parts.select("day").distinct().collect())
    before = reader.old_rows(tables.PARTS).where(sf.col("day").isin(*days))
    wanted = ["day", *tables.PARTS.names]
    lost = found.where("kind in ('lost', 'unsent')").select(
        "partition_id", "sequence", sf.lit(1).cast("long").alias("told_now")
    )
    state = (
        known.where(still_there())
        .join(lost, ["partition_id", "sequence"], "left")
        .withColumn("told", sf.greatest("told", sf.coalesce("told_now", sf.lit(0).cast("long"))))
    )
    return Rolled(
        added={tables.PARTS.name: parts, tables.FINDINGS.name: all_found},
        days={tables.HOURS.name: (days, by_hour(before.select(*wanted).unionByName(parts.select(*wanted))))},
        whole={tables.OPEN.name: open_messages(known), tables.STATE.name: state},
        kept=(known, found, parts, *strange),
    )


def _new_gaps(reader: Reader, surroundings: Surroundings) -> tuple[Gap, ...]:
    """Those that no roll-up has told of yet."""
    if not surroundings.gaps:
        return ()
    told = {(row["partition_id"], row["first_missing"]) for row in reader.all_rows(tables.GAPS).collect()}
    return tuple(gap for gap in surroundings.gaps if (gap.writer, gap.first) not in told)


def _with_history(known: DataFrame, everything: DataFrame) -> tuple[DataFrame, list[DataFrame]]:
    """A message without a beginning may have ended before: then everything that was ever said of it is looked up.

    Returns the messages, and what was kept in memory on the way.
    """
    strange = (
        known.where("begins = 0 and told = 0")
        .select("partition_id", "sequence")
        .limit(_STRANGE_AT_ONCE)
        .persist()
    )
    partitions = [row[0] for row in strange.select("partition_id").distinct().collect()]
    if not partitions:
        strange.unpersist()
        return known, []
    history = everything.where(sf.col("partition_id").isin(*partitions))
    again = (
        messages(history)
        .join(sf.broadcast(strange), ["partition_id", "sequence"], "left_semi")
        .withColumns({"newly_leased": sf.lit(False), "looked_up": sf.lit(True)})
    )
    others = known.join(sf.broadcast(strange), ["partition_id", "sequence"], "left_anti")
    return without_forgotten(others.unionByName(again), history), [strange]


def _counted(condition: Column, name: str) -> Column:
    return sf.sum(condition.cast("long")).alias(name)


def _ending_names() -> list[str]:
    names = {
        int(Change.DELETED): "deleted",
        int(Change.EXPIRED): "expired",
        int(Change.DROPPED): "dropped",
        int(Change.PURGED): "purged",
        int(Change.MOVE_FINISHED): "moved",
        int(Change.QUEUE_DELETED): "queue_deleted",
    }
    return [names.get(int(change), "unfollowed") for change in ENDED]


JOB = Job(
    name="ledger",
    sentence="Every acknowledged send ends in exactly one way or is still there; findings name the message that does not.",
    queue=LIFECYCLE_QUEUE,
    rows=LIFECYCLE,
    writer="partition_id",
    tables=(
        tables.HOURS,
        tables.FINDINGS,
        tables.OPEN,
        tables.GAPS,
        tables.CHECK,
        tables.PARTS,
        tables.ROWS,
        tables.STATE,
    ),
    batch=_batch,
    roll=_roll,
    wants_queues=True,
    state=tables.STATE.name,
    rolled_by_addition=frozenset({tables.PARTS.name, tables.FINDINGS.name}),
)
