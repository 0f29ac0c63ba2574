"""From runs to messages: the facts about each, as sums, minima and maxima that can be added over time.

A change is packed into one long, its number above five bits for its kind, so the last change of a message is a maximum.
Only primitive aggregates are used: Spark updates those in place, and a string among them would make it sort.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import FINAL, Change
from penstock.pipeline.jobs.ledger_tables import PACKED
from penstock.pipeline.statement import listed, select

KEYS = ("queue", "queue_id", "partition", "partition_id", "sequence")
PLACE, MESSAGE = ", ".join(KEYS[:-1]), ", ".join(KEYS)
"""The columns, for SQL, that name a partition, and those that name a message."""
BEGINNINGS = (Change.SENT, Change.ARRIVED, Change.STOOD)
UNFOLLOWED = int(Change.UNFOLLOWED)
ENDED = (*sorted(FINAL), UNFOLLOWED)
"""After one of these the ledger has no more findings about a message, unless it is in a census when the log is switched on
again.
"""
CHANGE_BITS = 5
CHANGE_MASK = (1 << CHANGE_BITS) - 1
ALWAYS = 1 << 62
"""A number that no change has."""

ENTERS = f"change in ({int(Change.SENT)}, {int(Change.ARRIVED)})"
"""Of rows: whether messages come into a queue."""
BEGINS = f"change in ({listed(map(int, BEGINNINGS))})"
"""Whether they begin for the ledger."""

_SUMS = ("begins", "sent", "finals", "leases")
_LEAST = ("began_us", "first_lease", "first_final", "ordering", "gone_us")
_GREATEST = ("last_lease", "leased_us", "last_final", "ended_us", "last", "group_hash", "told")
_PACKED_NAMES = ", ".join(one.name for one in PACKED)

_ENDS = f"change in ({listed(sorted(map(int, FINAL)))})"
_LEASES = f"change = {int(Change.LEASED)}"
_UNSEEN = f"coalesce(change = {int(Change.RELEASED)} and reason = 'unreceived', false)"
_CHANGE = f"shiftleft(number, {CHANGE_BITS}) | cast(change as bigint)"
_BY_NUMBER = "coalesce(ordering = 'fifo' or (ordering = 'clock' and stamps = 'server'), false)"
_ORDERED_UNTIL = f"""case
            when {ENTERS} then case when {_BY_NUMBER} then {ALWAYS}L else 0L end
            when change in ({int(Change.STOOD)}, {UNFOLLOWED}) then number
        end"""
"""Up to which change the order is checked; 0: never, null: this row does not say. The least one counts.

With producers' stamps a message may overtake an earlier number. And for messages of a log that was off it is unknown
whether they were leased meanwhile.
"""

# A count of 0 says that nothing was there: it is about no message. Runs of one message, by far the most, need no list.
_SINGLE = f"""
    select {PLACE},
        explode(case when count = 1 then array(first) else sequence(first, first + count - 1) end) as sequence,
        cast({BEGINS} as bigint) as begins,
        cast(change = {int(Change.SENT)} as bigint) as sent,
        cast({_ENDS} as bigint) as finals,
        cast({_LEASES} as bigint) - cast({_UNSEEN} as bigint) as leases,
        case when {BEGINS} then unix_micros(time) end as began_us,
        case when {_LEASES} then number end as first_lease,
        case when {_LEASES} then number end as last_lease,
        case when {_LEASES} then unix_micros(time) end as leased_us,
        case when {_ENDS} then {_CHANGE} end as first_final,
        case when {_ENDS} then {_CHANGE} end as last_final,
        case when {_ENDS} then unix_micros(time) end as ended_us,
        {_CHANGE} as last,
        {_ORDERED_UNTIL} as ordering,
        case when {BEGINS} then coalesce(xxhash64(message_group), 0L) end as group_hash,
        0L as told,
        cast(null as bigint) as gone_us,
        cast(null as bigint) as leased_before
    from {{rows}}
    where count > 0"""
"""Rows of runs as rows of messages, with what each says in the packed columns."""


def messages(rows: DataFrame, state: DataFrame | None = None) -> DataFrame:
    """One row for each message: the facts in the rows, and the earlier ones; and whether it was leased for the first time
    since (`newly_leased`).
    """
    before = f"union all select {MESSAGE}, {_PACKED_NAMES}, first_lease as leased_before from {{state}}"
    totals = (
        f"{function}({name}) as {name}"
        for function, names in (("sum", _SUMS), ("min", _LEAST), ("max", _GREATEST))
        for name in names
    )
    return select(
        f"""
        select {MESSAGE},
            {", ".join(totals)},
            min(first_lease) is not null and max(leased_before) is null as newly_leased
        from (
            select {MESSAGE}, {_PACKED_NAMES}, leased_before from ({_SINGLE})
            {"" if state is None else before}
        )
        group by {MESSAGE}
        """,
        rows=rows,
        **({} if state is None else {"state": state}),
    )


def change_of(packed: str) -> str:
    """In SQL: the kind of a packed change."""
    return f"cast({packed} & {CHANGE_MASK} as int)"


def number_of(packed: str) -> str:
    """Its number."""
    return f"shiftright({packed}, {CHANGE_BITS})"


def has_ended() -> str:
    """Whether a message has ended. So has one whose log was switched off, until it has rows again."""
    return f"(finals > 0 or {change_of('last')} = {UNFOLLOWED})"


def without_forgotten(known: DataFrame, rows: DataFrame) -> DataFrame:
    """Messages that were sent before `rows`, all that there are, count as known from the start.

    The lifecycle log removes its oldest rows. If those of a partition do not begin with number 1, messages before the
    first that was sent in them may lack their beginning without an error.
    """
    return select(
        f"""
        select /*+ broadcast(cut) */ known.* except (told),
            case
                when begins = 0 and first_number is not null and (entered is null or sequence < entered) then 1L
                else told
            end as told
        from {{known}} as known
        left join (
            select partition_id, min(number) as first_number, min(case when {ENTERS} then first end) as entered
            from {{rows}}
            group by partition_id
            having min(number) > 1
        ) as cut on known.partition_id = cut.partition_id
        """,
        known=known,
        rows=rows,
    )
