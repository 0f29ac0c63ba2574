"""The findings of the ledger: each names the queue, the partition, the message and its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import Change
from penstock.pipeline.jobs.ledger_messages import MESSAGE, UNFOLLOWED, change_of, number_of
from penstock.pipeline.jobs.ledger_missing import GRACE_MS, OVERDUE
from penstock.pipeline.jobs.message_ids import message_id_function
from penstock.pipeline.statement import listed, select

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import ServerFacts

_WORDS = ", ".join(f"{int(change)}, '{change.name.lower().replace('_', ' ')}'" for change in Change)
_MOVING_TIME = "interval 1 minute"
"""A move that ends within this time after a queue is followed may have arrived before."""


def findings(known: DataFrame) -> DataFrame:
    """Everything that is wrong with these messages, which have their doubts and what is missing; without their ids."""
    checks = (ended_twice(), delivered_after_end(), unsent(), lost())
    # One pass over the messages for all checks: a pass each would go through all rows as often.
    return select(
        f"""
        with suspects as (
            select *, explode(array_compact(array({", ".join(check.found() for check in checks)}))) as found
            from {{known}}
            where {" or ".join(f"coalesce({check.wrong}, false)" for check in checks)}
        ),
        overtakers as ({_OVERTAKERS})
        {_told("found.kind", "found.number", "found.explanation", "suspects")}
        union all
        {_told("'reordered'", "first_lease", _OVERTOOK, "overtakers")}
        """,
        known=known,
    )


class Check(NamedTuple):
    """When a message is a finding, and its sentence; in SQL."""

    kind: str
    wrong: str
    number: str
    text: str

    def found(self) -> str:
        """Null where nothing is wrong."""
        finding = f"struct('{self.kind}' as kind, {self.number} as number, {self.text} as explanation)"
        return f"case when {self.wrong} then {finding} end"


def ended_twice() -> Check:
    """More than one final state. Switching the lifecycle log off is none: the message continues to exist."""
    text = f"'it ended ' || finals || ' times: first ' || {_word('first_final')} || ', last ' || {_word('last_final')}"
    return Check("duplicate-end", "finals > 1", number_of("last_final"), text)


def delivered_after_end() -> Check:
    """Handed out although it was gone."""
    wrong = f"last_lease > {number_of('first_final')}"
    text = f"'it was handed out after it was ' || {_word('first_final')}"
    return Check("delivered-after-end", wrong, "last_lease", text)


def unsent() -> Check:
    """Something happened to it, but no row says that it was ever sent."""
    text = "'it has changes, but none says that it was sent, arrived or was in a census'"
    return Check("unsent", "begins = 0 and told = 0", number_of("last"), text)


def lost() -> Check:
    """It never ended and cannot be there any more; unless rows are missing that may contain its end."""
    wrong = "missing is not null and not doubted and told = 0"
    text = f"""case
        when missing = '{OVERDUE}' then 'its retention is over, yet it neither ended nor expired'
        else 'it was sent and never ended, and it is not among what the partition had later'
    end"""
    return Check("lost", wrong, number_of("last"), text)


# An earlier message may have been leased in a gap: after a gap only later messages are checked.
_FREED = f"struct(least(first_lease, {number_of('first_final')}, ordering) as freed, sequence)"
_OVERTAKERS = f"""
    select *
    from (
        select *,
            case
                when first_lease < gap_first then max({_FREED}) over earlier
                else max(case when gap_first is null or sequence >= sure_from then {_FREED} end) over earlier
            end as in_the_way
        from {{known}}
        where ordering > 0
        window earlier as (
            partition by partition_id, group_hash
            order by sequence
            rows between unbounded preceding and 1 preceding
        )
    )
    where newly_leased and first_lease < ordering and in_the_way.freed > first_lease"""
"""Leased while an earlier message of its group was there and had not been leased.

A message stops blocking others with the change that leases it first or ends it. So in the order of numbers, no message of
a group may have been leased before all earlier ones stopped blocking.
"""
_OVERTOOK = (
    "'it was handed out before message ' || in_the_way.sequence"
    " || ' of its group, which was sent earlier and was still there'"
)


def never_arrived(known: DataFrame, rows: DataFrame, server_facts: ServerFacts) -> DataFrame:
    """Moved to another queue that is followed, and never seen there. Only all rows together can tell."""
    return select(
        f"""
        with watched as ({_watched(server_facts)}),
        arrived as (
            select other_partition_id as partition_id,
                explode(sequence(other_first, other_first + count - 1)) as sequence
            from {{rows}}
            where change = {int(Change.ARRIVED)}
        ),
        moved as (
            select /*+ broadcast(watched) */ partition_id, explode(sequence(first, first + count - 1)) as sequence
            from {{rows}} as rows
            join watched on rows.other_queue = watched.queue
            where change = {int(Change.MOVE_FINISHED)}
                and time >= watched_from
                and (time < heard_until or unix_micros(time) < {server_facts.now_us - 1000 * GRACE_MS}L)
        ),
        gone as (
            select moved.partition_id, moved.sequence
            from moved
            left anti join arrived
                on moved.partition_id = arrived.partition_id and moved.sequence = arrived.sequence
        ),
        astray as (
            select known.*
            from {{known}} as known
            left semi join gone on known.partition_id = gone.partition_id and known.sequence = gone.sequence
        )
        {_told("'never-arrived'", number_of("last"), "'it moved to another queue, where it never arrived'", "astray")}
        """,
        known=known,
        rows=rows,
    )


def _watched(server_facts: ServerFacts) -> str:
    """Queues where no arrival can have been missed: since when, and until when rows were received.

    Excluded are queues whose log was off for a time, that were created again, or with missing rows.
    """
    gaps = listed(sorted({int(gap.writer) for gap in server_facts.gaps}))
    return f"""
        select queue,
            greatest(min(begun), max(stood)) as watched_from,
            max(heard_until) as heard_until
        from (
            select queue, queue_id,
                min(time) as begun,
                max(time) as heard_until,
                max(case when change = {int(Change.STOOD)} then time end) + {_MOVING_TIME} as stood,
                max(change = {UNFOLLOWED}) as interrupted,
                min(number) > 1 or coalesce(partition_id in ({gaps}), false) as incomplete
            from {{rows}}
            group by queue, partition_id, queue_id
        )
        group by queue
        having not max(interrupted or incomplete) and count(distinct queue_id) = 1"""


def with_message_ids(found: DataFrame) -> DataFrame:
    """Findings as the table has them."""
    identity = f"{message_id_function(found.sparkSession)}(queue_id, partition, sequence)"
    return select(
        f"""
        select kind, {MESSAGE},
            case when sent > 0 then {identity} end as message_id,
            number, time, explanation
        from {{found}}
        """,
        found=found,
    )


def _told(kind: str, number: str, explanation: str, wrong: str) -> str:
    """Findings about messages; `sent` tells whether they have an id."""
    return f"""
        select {kind} as kind, {MESSAGE},
            {number} as number,
            timestamp_micros(greatest(began_us, leased_us, ended_us)) as time,
            {explanation} as explanation,
            sent
        from {wrong}"""


def _word(packed: str) -> str:
    """The name of a change."""
    return f"map({_WORDS})[{change_of(packed)}]"
