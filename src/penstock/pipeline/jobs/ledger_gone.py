"""Messages of deleted queues whose last rows never came.

A deleted queue reports the end of all its messages. In a cluster there may be no node left to do so: then its messages
would stay in the ledger forever. The server says that a queue is gone; but its last rows may still be in transit, and the
job may be far behind. So the job notes when a queue was first missing, and concludes from that only when it has read rows
that are an hour younger.
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
    """The known facts about queues that are gone."""

    queue_ids: frozenset[int] | None = None
    """Those that the server no longer has; None: it could not be asked."""
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
    """One finding for each partition of a queue that is gone: the number of messages with an unknown end. Earlier findings
    are not repeated.
    """
    return select(
        f"""
        select 'queue-gone' as kind, {PLACE},
            cast(null as bigint) as sequence,
            cast(null as string) as message_id,
            max({number_of("last")}) as number,
            timestamp_micros(max(greatest(began_us, leased_us))) as time,
            'the queue is gone, and rows about its end never came: it is unknown how ' || count(*)
                || ' messages ended that were there, ' || min(known.sequence) || ' to ' || max(known.sequence) as explanation
        from {{known}} as known
        where gone and told = 0
        group by {PLACE}
        """,
        known=known,
    )
