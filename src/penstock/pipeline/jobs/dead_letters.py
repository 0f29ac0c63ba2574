"""The job `dead-letters`: why messages die, by queue, reason, consumer and consumers' errors, hour by hour."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE, Change
from penstock.pipeline.jobs.fingerprint import fingerprint
from penstock.pipeline.jobs.job import Job, Reader, Rolled, ServerFacts, Tables, gap_table
from penstock.pipeline.jobs.message_ids import message_id_function
from penstock.pipeline.statement import select, texts_of, within
from penstock.pipeline.warehouse.table import WarehouseTable, column

SAMPLES = 3
_LOOK_BACK = timedelta(days=14)
"""A message that died was handed out within the longest retention before."""
_NOT_DEATHS = ("redrive",)
_SEQUENCES = "explode(sequence(first, first + count - 1))"
"""Of a run every message."""

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
        column("error", "string", "For a failure, the consumer's error."),
        column("receives", "int32", "Of a death how often the messages were received at most."),
        column("other_queue", "string", "Of a death the queue they went to; empty: they are gone."),
    ),
    by_day=True,
)

_CAUSE = (
    column("queue", "string", "The queue in which they died."),
    column("reason", "string", "max-receives, expired, overflow, late, queue-deleted, dropped or ttl."),
    column("consumer", "string", "The last consumer; empty: unknown."),
    column("fingerprint", "string", "That consumer's error, without numbers, ids and quoted text."),
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
        column("dead_letter_queue", "string", "The queue to which they went; empty: they are gone."),
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
    return select(
        f"""
        select * except (reason), to_date(time) as day,
            if(change = {int(Change.DROPPED)}, 'dropped', reason) as reason
        from (
            select *,
                case
                    when change = {int(Change.MOVE_FINISHED)} and reason not in ({texts_of(_NOT_DEATHS)}) then 'death'
                    when change = {int(Change.DROPPED)} then 'death'
                    when change = {int(Change.EXPIRED)} and reason = 'ttl' then 'death'
                    when change = {int(Change.LEASED)} and consumer is not null then 'delivery'
                    when change = {int(Change.RELEASED)} and error is not null then 'failure'
                end as kind
            from {{rows}}
        )
        where kind is not null
        """,
        rows=rows,
    )


def deaths_explained(deaths: DataFrame, others: DataFrame) -> DataFrame:
    """One row for each dead message: with its last consumer, and its last error."""
    dead = select(
        f"""
        select * except (consumer, error, number), number as died, {_SEQUENCES} as sequence
        from {{deaths}}
        where kind = 'death'
        """,
        deaths=deaths,
    )
    known = select(
        f"""
        select /*+ broadcast(bounds) */ partition_id, {_SEQUENCES} as sequence, number, consumer, error
        from {{others}}
        join (
            select partition_id, min(sequence) as lowest, max(sequence) as highest
            from {{dead}}
            group by partition_id
        ) as bounds using (partition_id)
        where kind <> 'death' and first <= highest and first + count > lowest
        """,
        others=others,
        dead=dead,
    )
    return select(
        f"""
        select *, coalesce(last_consumer, '') as consumer, {fingerprint("error")} as fingerprint
        from {{dead}}
        left join (
            select partition_id, sequence, died,
                max_by(consumer, if(consumer is not null, number, null)) as last_consumer,
                max_by(error, if(error is not null, number, null)) as error
            from {{dead}} join {{known}} using (partition_id, sequence)
            where number < died
            group by partition_id, sequence, died
        ) using (partition_id, sequence, died)
        """,
        dead=dead,
        known=known,
    )


def by_hour(dead: DataFrame) -> DataFrame:
    """Dead messages counted by hour and cause, the first few of each as samples."""
    cause = "hour, queue, reason, consumer, fingerprint"
    return select(
        f"""
        select {cause},
            count(*) as messages,
            max(receives) as receives_max,
            max(coalesce(other_queue, '')) as dead_letter_queue,
            collect_list(if(place <= {SAMPLES}, struct(message_id, partition, sequence, error), null)) as samples,
            to_date(hour) as day
        from (
            select *,
                {message_id_function(dead.sparkSession)}(queue_id, partition, sequence) as message_id,
                row_number() over (partition by {cause} order by time, partition_id, sequence) as place
            from (select *, date_trunc('hour', time) as hour from {{dead}})
        )
        group by {cause}
        """,
        dead=dead,
    )


def causes(hours: DataFrame) -> DataFrame:
    """Hours added up by cause, with their trend."""
    cause = "queue, reason, consumer, fingerprint"
    return select(
        f"""
        select {cause},
            sum(messages) as messages,
            sum(if(age < 24, messages, 0)) as last_day,
            sum(if(age >= 24 and age < 48, messages, 0)) as day_before,
            min(hour) as first_hour,
            max(hour) as last_hour
        from (
            select /*+ broadcast(newest) */ *, (unix_timestamp(latest) - unix_timestamp(hour)) / 3600 as age
            from {{hours}} cross join (select max(hour) as latest from {{hours}}) as newest
        )
        group by {cause}
        order by last_day desc, messages desc
        """,
        hours=hours,
    )


def _batch(rows: DataFrame) -> Tables:
    return {ROWS.name: of_interest(rows)}


def _roll(reader: Reader, server_facts: ServerFacts) -> Rolled:
    died = select(
        "select distinct day from {rows} where kind = 'death' order by day", rows=reader.new_rows(ROWS)
    ).collect()
    days = [row["day"] for row in died]
    if not days:
        return Rolled()
    recent = reader.all_rows(ROWS).where(f"day between date'{days[0] - _LOOK_BACK}' and date'{days[-1]}'")
    dead = deaths_explained(recent.where(within(days)), recent)
    hours = by_hour(dead).persist()
    names = ", ".join(HOURS.names)
    everything = select(
        f"select {names} from {{others}} where not {within(days)} union all select {names} from {{hours}}",
        others=reader.all_rows(HOURS),
        hours=hours,
    )
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
