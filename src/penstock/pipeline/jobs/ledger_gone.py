"""Messages of queues that are gone: nothing more will be heard of them, and their last rows never came.

A queue that is deleted says what became of everything that was left. In a cluster nobody may be left to say it: then its
messages would stand in the ledger for ever. That a queue is gone the server tells who asks for it; but its last rows may be on
their way, and the job may be far behind. So it is written down when a queue was first missed, and concluded from that only when
rows were read that are an hour younger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame

from penstock.model.errors import PenstockError
from penstock.model.internal_queues import INTERNAL_PREFIX
from penstock.pipeline.jobs.ledger_messages import PLACE, has_ended, number_of
from penstock.pipeline.jobs.ledger_missing import GRACE_MS
from penstock.pipeline.statement import listed, select

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import ServerFacts

_ASKED_AT_ONCE = 1_000


class Absence(NamedTuple):
    """What a roll-up knows of queues that are gone."""

    queue_ids: frozenset[int] | None = None
    """Those that the server has no more, as it says now; None: it could not be asked."""
    now_us: int = 0
    heard_us: int | None = None
    """How young the new rows are; None where no queue was missed before, and it does not matter."""


NOT_ASKED = Absence()


def absence(rows: DataFrame, state: DataFrame, server_facts: ServerFacts) -> Absence:
    """Asks the server for the queues of messages that had not ended, where it has not named them; `rows` are the new ones."""
    if server_facts.missing_of is None:
        return NOT_ASKED
    named = {queue.get("queue_id") for queue in server_facts.queues}
    queues = select(
        "select queue, queue_id, min(gone_us) as gone_us from {state} group by queue, queue_id", state=state
    ).collect()
    unnamed = [
        (row["queue"], row["queue_id"])
        for row in queues
        if row["queue_id"] not in named and not row["queue"].startswith(INTERNAL_PREFIX)
    ]
    try:
        missing = server_facts.missing_of(unnamed[:_ASKED_AT_ONCE]) if unnamed else frozenset()
    except PenstockError:  # it was there a moment ago
        return NOT_ASKED
    if all(row["gone_us"] is None for row in queues):
        return Absence(missing, server_facts.now_us)
    (youngest,) = select("select max(unix_micros(time)) as heard_us from {rows}", rows=rows).collect()
    return Absence(missing, server_facts.now_us, youngest["heard_us"])


def with_gone(known: DataFrame, absence: Absence) -> DataFrame:
    """Messages with when their queue was first missed (`gone_us`), and whether that is certain by now (`gone`)."""
    queue_ids, now_us, heard_us = absence
    if queue_ids is None:
        return select("select *, false as gone from {known}", known=known)
    if not queue_ids:
        unmissed = "select * except (gone_us), cast(null as bigint) as gone_us, false as gone from {known}"
        return select(unmissed, known=known)
    missed = f"queue_id in ({listed(sorted(queue_ids))}) and not {has_ended()}"
    return select(
        f"""
        select * except (gone_us),
            case when {missed} then coalesce(gone_us, {now_us}L) end as gone_us,
            coalesce({missed} and gone_us + {1000 * GRACE_MS}L <= {heard_us or 0}L, false) as gone
        from {{known}}
        """,
        known=known,
    )


def gone_findings(known: DataFrame) -> DataFrame:
    """One for each partition of a queue that is gone: how many messages nobody knows the end of. Those told of before are not
    told of again."""
    return select(
        f"""
        select 'queue-gone' as kind, {PLACE},
            cast(null as bigint) as sequence,
            cast(null as string) as message_id,
            max({number_of("last")}) as number,
            timestamp_micros(max(greatest(began_us, leased_us))) as time,
            'the queue is gone, and rows about its end never came: nobody knows how ' || count(*)
                || ' messages ended that were there, ' || min(known.sequence) || ' to ' || max(known.sequence) as explanation
        from {{known}} as known
        where gone and told = 0
        group by {PLACE}
        """,
        known=known,
    )
