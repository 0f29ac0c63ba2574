"""The job `capacity`: how queues grow and fill, when each is 80 % full, and how many partitions it needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE
from penstock.pipeline.jobs.capacity_forecast import Forecast, Growth, forecast, unknown_growth
from penstock.pipeline.jobs.job import Job, Reader, Rolled, ServerFacts, Tables, gap_table
from penstock.pipeline.jobs.ledger_messages import BEGINNINGS, ENDED
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.statement import listed, select, within
from penstock.pipeline.warehouse.table import WarehouseTable, column

WINDOW_HOURS = 24
"""Growth is measured over the last day."""

_COUNTS = (
    column("began", "int64", "Messages that were sent or arrived."),
    column("began_bytes", "int64", "Their bodies and attributes, in bytes, as far as it is known."),
    column("measured", "int64", "How many of them that is known of."),
    column("ended", "int64", "Messages that were deleted, expired or left in another way."),
)
PARTS = WarehouseTable(
    "capacity_parts",
    "Arrivals and departures by minute, one row for each batch: a minute may have several rows, which are added.",
    "batches",
    (
        column("minute", "timestamp", "The minute, by its beginning."),
        column("queue", "string", "The queue's name."),
        *_COUNTS,
    ),
    by_day=True,
)
HOURS = WarehouseTable(
    "capacity_hours",
    "Arrivals and departures by hour and queue.",
    "days",
    (
        column("hour", "timestamp", "The hour, by its beginning."),
        column("queue", "string", "The queue's name."),
        *_COUNTS,
        column("net", "int64", "By how many messages the queue grew; negative: it shrank."),
        column("peak_minute", "int64", "Messages that began in the busiest minute."),
    ),
    by_day=True,
    ages="never",
)
CAPACITY = WarehouseTable(
    "capacity",
    "Every queue: how full it is, how it grows, when it is 80 % full and how many partitions it wants.",
    "whole",
    (
        column("queue", "string", "The queue's name."),
        column("measured", "timestamp", "When this was worked out."),
        column("messages", "int64", "Messages in it."),
        column("bytes", "int64", "Their bytes."),
        column(
            "messages_per_hour",
            "double",
            "Growth over the last day; negative: it shrinks; null: not known, for the queue is not followed.",
        ),
        column("bytes_per_hour", "double", "The same in bytes."),
        column(
            "limit",
            "string",
            "The limit that is reached first: max-messages, max-bytes, retention, disk (by the growth of queues with a "
            "lifecycle log only); empty: none.",
        ),
        column("fill", "double", "How much of that is used, from 0 to 1."),
        column(
            "full_at",
            "timestamp",
            "When 80 % of it will be used at this rate; null: never, or unknown if growth is null.",
        ),
        column("peak_per_second", "double", "Messages a second in the busiest minute; null: not known."),
        column("partitions", "int32", "How many partitions it has."),
        column("recommended_partitions", "int32", "How many the busiest minute asks for; null: not known."),
    ),
)
GAPS = gap_table("capacity_gaps", "partition_id", "The partition that numbered them.")


def partial_counts(rows: DataFrame) -> DataFrame:
    """Rows of lifecycles by minute and queue."""
    began, ended = (f"change in ({listed(map(int, changes))})" for changes in (BEGINNINGS, ENDED))
    known = f"({began} and bytes is not null)"
    return select(
        f"""
        select date_trunc('minute', time) as minute, queue,
            sum(if({began}, count, 0)) as began,
            sum(if({known}, bytes, 0)) as began_bytes,
            sum(if({known}, count, 0)) as measured,
            sum(if({ended}, count, 0)) as ended,
            to_date(date_trunc('minute', time)) as day
        from {{rows}}
        where {began} or {ended}
        group by date_trunc('minute', time), queue
        """,
        rows=rows,
    )


def by_hour(parts: DataFrame) -> DataFrame:
    """Partial counts added up, to minutes and then to hours."""
    sums = ", ".join(f"sum({one.name}) as {one.name}" for one in _COUNTS)
    return select(
        f"""
        select date_trunc('hour', minute) as hour, queue, {sums},
            max(began) as peak_minute,
            sum(began) - sum(ended) as net,
            to_date(date_trunc('hour', minute)) as day
        from (select minute, queue, {sums} from {{parts}} group by minute, queue)
        group by date_trunc('hour', minute), queue
        """,
        parts=parts,
    )


def growth(hours: DataFrame, now_us: int) -> DataFrame:
    """One row for each queue: its contents by the rows, and the growth of the last day."""
    since = now_us // 1_000_000 - WINDOW_HOURS * 3600
    recent = f"unix_timestamp(hour) >= {since}"
    first = f"greatest(min(unix_timestamp(hour)), {since})"
    spanned = f"greatest(({now_us / 1e6}D - {first}) / 3600, 1D)"
    return select(
        f"""
        select queue,
            sum(net) as messages,
            sum(began_bytes) / greatest(sum(measured), 1) as bytes_a_message,
            sum(if({recent}, net, 0)) / {spanned} as messages_an_hour,
            max(if({recent}, peak_minute, 0)) / 60 as peak
        from {{hours}}
        group by queue
        """,
        hours=hours,
    )


def forecasts(grown: list[Growth], server_facts: ServerFacts) -> list[Forecast]:
    """Every queue in the rows or on the server. Queues are few: this is plain Python."""
    by_name = {str(one["name"]): one for one in server_facts.queues}
    known = {one.queue: one for one in grown if not by_name or one.queue in by_name}
    for name, facts in by_name.items():
        if not facts.get("followed"):
            known[name] = unknown_growth(name)  # rows of an earlier lifecycle log say nothing about now
        else:
            known.setdefault(name, Growth(name, 0, 0.0, 0.0, 0.0))
    disk = None
    if server_facts.disk_total_bytes and server_facts.disk_free_bytes is not None:
        # Only for queues with a lifecycle log: the others' growth is unknown.
        grows = sum(max(0.0, one.bytes_an_hour or 0.0) for one in known.values())
        used = server_facts.disk_total_bytes - server_facts.disk_free_bytes
        disk = (used, server_facts.disk_total_bytes, grows)
    return [
        forecast(one, by_name.get(one.queue), disk, server_facts.now_us)
        for one in sorted(known.values(), key=lambda one: one.queue)
    ]


def as_row(found: Forecast, now_us: int) -> dict[str, Any]:
    """A row of the table."""
    now = datetime.fromtimestamp(now_us / 1e6, UTC)
    hours = found.hours_to_full
    row = {name: value for name, value in found._asdict().items() if name != "hours_to_full"}
    return {**row, "measured": now, "full_at": None if hours is None else now + timedelta(hours=hours)}


def _batch(rows: DataFrame) -> Tables:
    return {PARTS.name: partial_counts(rows)}


def _roll(reader: Reader, server_facts: ServerFacts) -> Rolled:
    days = reader.new_days(PARTS)
    hours = by_hour(reader.all_rows(PARTS).where(within(days))).persist()
    names = ", ".join(HOURS.names)
    everything = select(
        f"select {names} from {{others}} where not {within(days)} union all select {names} from {{hours}}",
        others=reader.all_rows(HOURS),
        hours=hours,
    )
    table = capacity_table(everything, server_facts)
    return Rolled(days={HOURS.name: (days, hours)}, whole={CAPACITY.name: table}, kept=(hours,))


def _renew(reader: Reader, server_facts: ServerFacts) -> Tables:
    """A queue fills, and its limits are altered, though no message comes or goes."""
    return {CAPACITY.name: capacity_table(reader.all_rows(HOURS), server_facts)}


def capacity_table(hours: DataFrame, server_facts: ServerFacts) -> DataFrame:
    """The rows of `capacity`, from all hours and what the server says now."""
    grown = [
        Growth(
            row["queue"],
            max(0, row["messages"]),
            float(row["bytes_a_message"]),
            float(row["messages_an_hour"]),
            float(row["peak"]),
        )
        for row in growth(hours, server_facts.now_us).collect()
    ]
    rows = [as_row(found, server_facts.now_us) for found in forecasts(grown, server_facts)]
    values = [[row[name] for name in CAPACITY.names] for row in rows]
    return local_rows(hours.sparkSession, values, CAPACITY.file_schema())


JOB = Job(
    name="capacity",
    sentence="How queues grow and fill, when each is 80 % full, and how many partitions it wants.",
    queue=LIFECYCLE_QUEUE,
    rows=LIFECYCLE,
    writer="partition_id",
    tables=(CAPACITY, HOURS, GAPS, PARTS),
    batch=_batch,
    roll=_roll,
    wants_queues=True,
    renew=_renew,
)
