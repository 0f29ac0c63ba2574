"""The job `usage`: which users request what, how often, how much and how fast, by minute, hour and day.

Batches add partial sums; roll-ups add those up for the days that have new ones. Nothing is remembered in between.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.columnar.usage import REFUSED, USAGE, USAGE_QUEUE
from penstock.pipeline.jobs.job import Job, Reader, Rolled, ServerFacts, Tables, gap_table
from penstock.pipeline.jobs.latency import Buckets
from penstock.pipeline.statement import select, texts_of, within
from penstock.pipeline.warehouse.table import WarehouseColumn, WarehouseTable, column

LATENCY = Buckets("latency", 100, 1.28, 50, "microseconds")
"""From 0.1 ms to 18 s; longer durations are interpolated up to the longest."""

KEYS = ("account", "user", "queue", "action")
_KEY_NAMES = ", ".join(f"`{name}`" for name in KEYS)
THROTTLED = ("RequestThrottled", "KMS.ThrottlingException", "throttled")
"""Outcomes that tell the caller to slow down."""
_IS_SUM = f"`user` = '' and action = '{REFUSED}'"
_REQUESTS = f"if({_IS_SUM}, messages, 1)"
"""The number of requests of a row: many requests of unknown callers are summed."""

_KEY_COLUMNS = (
    column("account", "string", "The account that asked."),
    column("user", "string", "The user; empty: unknown."),
    column("queue", "string", "The queue's ARN; empty for an action on no queue."),
    column("action", "string", "The requested action, such as SendMessage."),
)
_SUM_COLUMNS = (
    column("requests", "int64", "Requests with any result."),
    column("messages", "int64", "Messages sent, received, deleted or changed by them."),
    column("bytes_in", "int64", "Bytes of the requests."),
    column("bytes_out", "int64", "Bytes of the answers."),
    column("errors", "int64", "Requests that were answered with an error, throttled ones included."),
    column("throttles", "int64", "Requests that were throttled."),
    column("latency_us_sum", "int64", "Processing time of all of them, in microseconds."),
    column("latency_us_max", "int64", "Processing time of the slowest."),
)
_SUMS = tuple(one.name for one in _SUM_COLUMNS[:-1])

PARTS = WarehouseTable(
    "usage_parts",
    "Sums by minute, one row for each batch: a minute may have several rows, which are added.",
    "batches",
    (
        column("minute", "timestamp", "The minute in which the requests came."),
        *_KEY_COLUMNS,
        *_SUM_COLUMNS,
        *LATENCY.columns("Requests"),
    ),
    by_day=True,
)


def _rolled(name: str, unit: str, first: WarehouseColumn) -> WarehouseTable:
    return WarehouseTable(
        name,
        f"Requests by {unit}, account, user, queue and action.",
        "days",
        (
            first,
            *_KEY_COLUMNS,
            *_SUM_COLUMNS,
            column("latency_us_p50", "int64", "Half of the requests took at most this many microseconds."),
            column("latency_us_p95", "int64", "95 of a hundred did."),
            column("latency_us_p99", "int64", "99 of a hundred did."),
        ),
        by_day=True,
    )


MINUTES = _rolled("usage_minutes", "minute", column("minute", "timestamp", "The minute, by its beginning."))
HOURS = _rolled("usage_hours", "hour", column("hour", "timestamp", "The hour, by its beginning."))
DAYS = _rolled("usage_days", "day", column("date", "date", "The day, in UTC."))
GAPS = gap_table("usage_gaps", "front_end", "The front end that numbered them.")


def partial_sums(rows: DataFrame) -> DataFrame:
    """Rows of usage by minute and key. Counts below bounds cost a third of what `percentile_approx` does."""
    return select(
        f"""
        select date_trunc('minute', time) as minute, {_KEY_NAMES},
            sum({_REQUESTS}) as requests,
            sum(if({_IS_SUM}, 0, messages)) as messages,
            sum(bytes_in) as bytes_in,
            sum(bytes_out) as bytes_out,
            sum(if(outcome != 'ok', {_REQUESTS}, 0)) as errors,
            sum(if(outcome in ({texts_of(THROTTLED)}), {_REQUESTS}, 0)) as throttles,
            sum(latency_us) as latency_us_sum,
            max(latency_us) as latency_us_max,
            {LATENCY.counted("latency_us")},
            to_date(date_trunc('minute', time)) as day
        from {{rows}}
        group by date_trunc('minute', time), {_KEY_NAMES}
        """,
        rows=rows,
    )


def summed(parts: DataFrame, unit: str, name: str) -> DataFrame:
    """Partial sums by minute, hour or day (`unit`), with percentiles; the time is in column `name`."""
    begin = "to_date(minute)" if unit == "day" else f"date_trunc('{unit}', minute)"
    keys = f"day, {name}, {_KEY_NAMES}"
    sums = ", ".join(f"sum({one}) as {one}" for one in _SUMS)
    percentiles = ", ".join(
        f"{LATENCY.percentile(percent, 'requests', 'latency_us_max')} as latency_us_p{percent}"
        for percent in (50, 95, 99)
    )
    return select(
        f"""
        select {keys}, {", ".join(_SUMS)}, latency_us_max, {percentiles}
        from (
            select day, {begin} as {name}, {_KEY_NAMES},
                {sums}, max(latency_us_max) as latency_us_max, {LATENCY.added_up()}
            from {{parts}}
            group by day, {begin}, {_KEY_NAMES}
        )
        """,
        parts=parts,
    )


def _batch(rows: DataFrame) -> Tables:
    return {PARTS.name: partial_sums(rows)}


def _roll(reader: Reader, server_facts: ServerFacts) -> Rolled:
    days = reader.new_days(PARTS)
    parts = reader.all_rows(PARTS).where(within(days))
    return Rolled(
        days={
            MINUTES.name: (days, summed(parts, "minute", "minute")),
            HOURS.name: (days, summed(parts, "hour", "hour")),
            DAYS.name: (days, summed(parts, "day", "date")),
        }
    )


JOB = Job(
    name="usage",
    sentence="Requests, messages, bytes, errors and latency by minute, hour and day, account, user, queue and action.",
    queue=USAGE_QUEUE,
    rows=USAGE,
    writer="front_end",
    tables=(MINUTES, HOURS, DAYS, GAPS, PARTS),
    batch=_batch,
    roll=_roll,
)
