"""Messages that did not end and cannot be there any more: by the counts of a partition, and by its retention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import CENSUS, Change
from penstock.pipeline.jobs.ledger_messages import change_of, has_ended, number_of
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.statement import listed, select

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import ServerFacts

GRACE_MS = 3_600_000
"""For how long a message may be there after its retention before it counts as lost."""
NOT_COUNTED, OVERDUE = "not-counted", "overdue"
COLUMNS = ("missing", "doubted")
"""Why a message cannot be there any more, null where it can; and whether it may have ended in a gap, unseen."""

_COMPLETE = f"""
    select partition_id, max(struct(census_last, census_first)) as census
    from {{rows}}
    where change in ({listed(sorted(map(int, CENSUS)))}) and number = census_last
    group by partition_id"""
_CENSUSES = f"""
    select partition_id, census.census_first, cast(null as bigint) as census_gap
    from ({_COMPLETE})"""
"""For each partition the last complete census: where it begins, and the last gap before its end.

A census of many rows comes in several reports, and a roll-up may see only the first of them. Then nothing is concluded:
the roll-up that sees its last row does, because earlier listed messages ended or are identified by their numbers.
"""
_CENSUSES_WITH_GAPS = f"""
    select /*+ broadcast(gaps) */ complete.partition_id, census.census_first,
        max(case when gap_start < census.census_last then gap_start end) as census_gap
    from ({_COMPLETE}) as complete
    left join {{gaps}} as gaps on complete.partition_id = gaps.partition_id
    group by complete.partition_id, census.census_first"""


def with_missing(known: DataFrame, rows: DataFrame, server_facts: ServerFacts) -> DataFrame:
    """Messages, with the unknown changes, and these columns; `rows` are their changes."""
    # A moving message stays until it has arrived or has come back.
    stays = f"(not {has_ended()} and {change_of('last')} != {int(Change.MOVE_STARTED)})"
    last = number_of("last")
    uncounted = f"{stays} and {last} < census_first"
    overdue = f"{stays} and began_us < overdue_us"
    frames = {"known": known, "rows": rows, "queues": _queues(rows, server_facts)}
    if server_facts.gaps:
        starts = [(int(gap.writer), gap.first) for gap in server_facts.gaps]
        frames["gaps"] = local_rows(rows.sparkSession, starts, "partition_id long, gap_start long")
    return select(
        f"""
        select /*+ broadcast(censuses), broadcast(limits) */ known.*,
            case when {uncounted} then '{NOT_COUNTED}' when {overdue} then '{OVERDUE}' end as missing,
            coalesce(
                case when {uncounted} then census_gap > {last} when {overdue} then gap_last > {last} end,
                false
            ) as doubted
        from {{known}} as known
        left join ({_CENSUSES_WITH_GAPS if server_facts.gaps else _CENSUSES}) as censuses
            on known.partition_id = censuses.partition_id
        left join ({_limits(server_facts)}) as limits
            on known.partition_id = limits.partition_id and known.queue = limits.queue
        """,
        **frames,
    )


def _limits(server_facts: ServerFacts) -> str:
    """Before when a message must have begun to be overdue, by partition.

    As of the partition's own youngest row: how its messages ended since may not have been read, and a partition that
    is away cannot say it at all. Retention is that of the very queue, not of another that has its name now.
    """
    return f"""
        select /*+ broadcast(queues) */ partition_id, youngest.queue,
            least({server_facts.now_us}L, youngest_us) - 1000 * (retention_ms + {GRACE_MS}) as overdue_us
        from (
            select partition_id, queue, queue_id, max(unix_micros(time)) as youngest_us
            from {{rows}}
            group by partition_id, queue, queue_id
        ) as youngest
        join {{queues}} as queues on youngest.queue = queues.queue
        where coalesce(same_id = queue_id, true)"""


def _queues(rows: DataFrame, server_facts: ServerFacts) -> DataFrame:
    kept = [(str(one["name"]), one.get("queue_id"), int(one["retention_ms"])) for one in server_facts.queues]
    return local_rows(rows.sparkSession, kept, "queue string, same_id long, retention_ms long")
