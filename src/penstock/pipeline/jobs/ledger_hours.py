"""What happened to messages, counted by hour and queue."""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.ledger_messages import BEGINS, UNFOLLOWED, change_of
from penstock.pipeline.statement import select

_ENDINGS = {
    "deleted": Change.DELETED,
    "expired": Change.EXPIRED,
    "dropped": Change.DROPPED,
    "purged": Change.PURGED,
    "moved": Change.MOVE_FINISHED,
    "queue_deleted": Change.QUEUE_DELETED,
}
"""Counts of messages with this end."""
_LARGEST = tuple(name for name in tables.COUNTS if name.endswith("_max"))
_SUMMED = tuple(name for name in tables.COUNTS if name not in _LARGEST)


def ended_counts(known: DataFrame) -> DataFrame:
    """Messages that ended, by the hour in which that was, and queue; those looked up were counted before."""
    endings = ", ".join(f"count_if(ending = {int(change)}) as {name}" for name, change in _ENDINGS.items())
    deleted = f"{change_of('first_final')} = {int(Change.DELETED)}"
    return select(
        f"""
        select hour, queue,
            0L as began,
            count(*) as ended,
            {endings},
            0L as unfollowed,
            sum(again) as redeliveries,
            max(dwell) as dwell_ms_max,
            max(work) as processing_ms_max,
            {tables.DWELL.counted("dwell")},
            {tables.PROCESSING.counted("work")}
        from (
            select date_trunc('hour', timestamp_micros(ended_us)) as hour, queue,
                {change_of("first_final")} as ending,
                greatest(leases - 1, 0) as again,
                floor((ended_us - began_us) / 1000) as dwell,
                case when {deleted} then floor((ended_us - leased_us) / 1000) end as work
            from {{known}}
            where finals > 0 and (not looked_up or begins = 0)
        )
        group by hour, queue
        """,
        known=known,
    )


def begun_counts(rows: DataFrame) -> DataFrame:
    """Messages that began, and those whose log was switched off, by hour and queue.

    A message in a later census begins again, so that every message that began has ended or is still there.
    """
    leaves = f"change = {UNFOLLOWED}"
    others = [name for name in _SUMMED if name not in ("began", "ended", "unfollowed")]
    zeros = ", ".join(f"0L as {name}" for name in (*others, *tables.DWELL.names, *tables.PROCESSING.names))
    return select(
        f"""
        select date_trunc('hour', time) as hour, queue,
            sum(case when {BEGINS} then count else 0 end) as began,
            sum(case when {leaves} then count else 0 end) as ended,
            sum(case when {leaves} then count else 0 end) as unfollowed,
            {zeros},
            {", ".join(f"cast(null as bigint) as {name}" for name in _LARGEST)}
        from {{rows}}
        where ({BEGINS} or {leaves}) and count > 0
        group by date_trunc('hour', time), queue
        """,
        rows=rows,
    )


def by_hour(parts: DataFrame) -> DataFrame:
    """Counts added up, with percentiles."""
    totals = ((tables.DWELL, "ended - unfollowed"), (tables.PROCESSING, "deleted"))
    percentiles = ", ".join(
        f"{buckets.percentile(percent, f'({total})', f'{buckets.prefix}_ms_max')} as {buckets.prefix}_ms_p{percent}"
        for buckets, total in totals
        for percent in (50, 95, 99)
    )
    return select(
        f"""
        select day, hour, queue, {", ".join(tables.COUNTS)}, {percentiles}
        from (
            select day, hour, queue,
                {", ".join(f"sum({name}) as {name}" for name in _SUMMED)},
                {", ".join(f"max({name}) as {name}" for name in _LARGEST)},
                {tables.DWELL.added_up()},
                {tables.PROCESSING.added_up()}
            from {{parts}}
            group by day, hour, queue
        )
        """,
        parts=parts,
    )
