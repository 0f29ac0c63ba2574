"""From runs to messages: what is known of each, as sums, least and greatest numbers that add up over time.

A change is packed into one long, its number above five bits of what it was, so the last change of a message is a maximum.
Only primitive aggregates are used: Spark keeps those in place, and a string among them would make it sort.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from penstock.columnar.lifecycle import FINAL, Change
from penstock.pipeline.jobs.ledger_tables import PACKED

KEYS = ("queue", "queue_id", "partition", "partition_id", "sequence")
BEGINNINGS = (Change.SENT, Change.ARRIVED, Change.STOOD)
UNFOLLOWED = int(Change.UNFOLLOWED)
ENDED = (*sorted(FINAL), UNFOLLOWED)
"""After one of these the ledger has no more to say of a message, unless it is found standing when a queue is followed again."""
CHANGE_BITS = 5
CHANGE_MASK = (1 << CHANGE_BITS) - 1
ALWAYS = 1 << 62
"""A number that no change has."""

_SUMS = ("begins", "sent", "finals", "leases")
_LEAST = ("began_us", "first_lease", "first_final", "ordering", "gone_us")
_GREATEST = ("last_lease", "leased_us", "last_final", "ended_us", "last", "group_hash", "told")


def single(rows: DataFrame) -> DataFrame:
    """Rows of runs as rows of messages, with what each says in the packed columns."""
    change, number = sf.col("change").cast("long"), sf.col("number")
    micros = sf.unix_micros("time")
    packed = sf.shiftleft(number, CHANGE_BITS).bitwiseOR(change)
    begins, ends = change.isin(*map(int, BEGINNINGS)), change.isin(*map(int, FINAL))
    leases = change == int(Change.LEASED)
    unseen = (change == int(Change.RELEASED)) & (sf.col("reason") == "unreceived")
    long = "long"
    # A count of 0 says that nothing was there: it is about no message.
    return rows.where("count > 0").select(
        *KEYS[:-1],
        # Runs of one message, by far the most, need no list.
        sf.explode(
            sf.when(sf.col("count") == 1, sf.array("first")).otherwise(
                sf.sequence("first", sf.col("first") + sf.col("count") - 1)
            )
        ).alias("sequence"),
        begins.cast(long).alias("begins"),
        (change == int(Change.SENT)).cast(long).alias("sent"),
        ends.cast(long).alias("finals"),
        (leases.cast(long) - sf.coalesce(unseen, sf.lit(False)).cast(long)).alias("leases"),
        sf.when(begins, micros).alias("began_us"),
        sf.when(leases, number).alias("first_lease"),
        sf.when(leases, number).alias("last_lease"),
        sf.when(leases, micros).alias("leased_us"),
        sf.when(ends, packed).alias("first_final"),
        sf.when(ends, packed).alias("last_final"),
        sf.when(ends, micros).alias("ended_us"),
        packed.alias("last"),
        _ordered_until(change, number).alias("ordering"),
        sf.when(begins, sf.coalesce(sf.xxhash64("message_group"), sf.lit(0))).alias("group_hash"),
        sf.lit(0).cast(long).alias("told"),
        sf.lit(None).cast(long).alias("gone_us"),
    )


def messages(rows: DataFrame, state: DataFrame | None = None) -> DataFrame:
    """One row a message: what the rows say, and what was known before."""
    known = single(rows)
    wanted = (*KEYS, *(one.name for one in PACKED))
    if state is not None:
        known = known.select(*wanted).unionByName(state.select(*wanted))
    return known.groupBy(*KEYS).agg(
        *(sf.sum(name).alias(name) for name in _SUMS),
        *(sf.min(name).alias(name) for name in _LEAST),
        *(sf.max(name).alias(name) for name in _GREATEST),
    )


def change_of(packed: str) -> Column:
    """What a packed change was."""
    return sf.col(packed).bitwiseAND(CHANGE_MASK).cast("int")


def number_of(packed: str) -> Column:
    """Its number."""
    return sf.shiftright(sf.col(packed), CHANGE_BITS)


def has_ended() -> Column:
    """Whether a message is at an end. One that is followed no more is, until it is heard of again."""
    return (sf.col("finals") > 0) | (change_of("last") == UNFOLLOWED)


def _ordered_until(change: Column, number: Column) -> Column:
    """Up to which change order is looked at; 0: never, null: this row does not tell. The least one counts.

    By producers' stamps a message may well overtake an earlier number. And of messages that are followed no more or are
    found standing nobody knows whether they were handed out meanwhile.
    """
    by_clock = (sf.col("ordering") == "clock") & (sf.col("stamps") == "server")
    by_number = sf.coalesce((sf.col("ordering") == "fifo") | by_clock, sf.lit(False))
    enters = change.isin(int(Change.SENT), int(Change.ARRIVED))
    return sf.when(enters, sf.when(by_number, sf.lit(ALWAYS)).otherwise(0)).when(
        change.isin(int(Change.STOOD), UNFOLLOWED), number
    )


def without_forgotten(known: DataFrame, rows: DataFrame) -> DataFrame:
    """Messages that were sent before `rows`, all that there are, begin count as told: nobody knows more of them.

    The log of lifecycles lets go of its oldest rows. Where those of a partition do not begin with number 1, messages
    before the first that was sent in them may lack their beginning without anything being wrong.
    """
    enters = sf.col("change").isin(int(Change.SENT), int(Change.ARRIVED))
    cut = (
        rows.groupBy("partition_id")
        .agg(
            sf.min("number").alias("first_number"), sf.min(sf.when(enters, sf.col("first"))).alias("entered")
        )
        .where("first_number > 1")
    )
    forgotten = (
        (sf.col("begins") == 0)
        & sf.col("first_number").isNotNull()
        & (sf.col("entered").isNull() | (sf.col("sequence") < sf.col("entered")))
    )
    return (
        known.join(sf.broadcast(cut), "partition_id", "left")
        .withColumn("told", sf.when(forgotten, sf.lit(1).cast("long")).otherwise(sf.col("told")))
        .drop("first_number", "entered")
    )
