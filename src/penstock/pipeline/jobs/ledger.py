"""The job `ledger`: every acknowledged send ends in exactly one way, or is still there; and every exception.

Batches store the rows unchanged. A roll-up adds the new ones to the known facts about messages that had not ended
(`STATE`), counts those that have ended now, and reports contradictions. `check_everything` does the same from all rows at
once.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE, Change
from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.job import Job, Reader, Rolled, ServerFacts, Tables
from penstock.pipeline.jobs.ledger_findings import findings, lost, never_arrived, unsent, with_message_ids
from penstock.pipeline.jobs.ledger_gaps import gap_findings, with_doubts
from penstock.pipeline.jobs.ledger_gone import NOT_ASKED, Absence, absence, gone_findings, with_gone
from penstock.pipeline.jobs.ledger_hours import begun_counts, by_hour, ended_counts
from penstock.pipeline.jobs.ledger_messages import (
    MESSAGE,
    change_of,
    has_ended,
    messages,
    without_forgotten,
)
from penstock.pipeline.jobs.ledger_missing import with_missing
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import Gap
from penstock.pipeline.statement import listed, select, within

_STRANGE_AT_ONCE = 10_000


def new_messages(rows: DataFrame, state: DataFrame) -> DataFrame:
    """The facts about messages with new rows or that had not ended, and whether they were just leased."""
    return messages(rows, state).selectExpr("*", "false as looked_up")


def still_there() -> str:
    """In SQL: not ended, as far as is known. Excluded are messages that may have ended in a gap and cannot be there any more,
    and those of queues that are gone.
    """
    return f"(not {has_ended()} and not gone and not (missing is not null and doubted))"


def judged(
    known: DataFrame,
    rows: DataFrame,
    history: DataFrame,
    server_facts: ServerFacts,
    gone: Absence = NOT_ASKED,
) -> DataFrame:
    """Messages with what is not known of them, and what is missing; `rows` are the new ones, `history` all there are."""
    doubted = with_doubts(known, history, server_facts.gaps)
    return with_gone(with_missing(doubted, rows, server_facts), gone)


def open_messages(known: DataFrame) -> DataFrame:
    """Those that have not ended, for people."""
    leased = listed(map(int, (Change.LEASED, Change.EXTENDED, Change.RESUMED)))
    return select(
        f"""
        select {MESSAGE},
            case
                when {change_of("last")} = {int(Change.MOVE_STARTED)} then 'moving'
                when {change_of("last")} = {int(Change.RELEASED)} then 'released'
                when {change_of("last")} in ({leased}) then 'leased'
                else 'waiting'
            end as state,
            timestamp_micros(began_us) as began,
            leases as deliveries
        from {{known}}
        where {still_there()}
        """,
        known=known,
    )


def kept_messages(known: DataFrame) -> DataFrame:
    """Messages that have not ended, for the next roll-up, without the findings of this one."""
    return select(
        f"""
        select * except (told),
            case when ({unsent().wrong}) or ({lost().wrong}) then 1L else told end as told
        from {{known}}
        where {still_there()}
        """,
        known=known,
    )


def check_everything(rows: DataFrame, server_facts: ServerFacts) -> DataFrame:
    """All findings, from all rows at once."""
    known = judged(without_forgotten(messages(rows), rows), rows, rows, server_facts)
    found = with_message_ids(findings(known).unionByName(never_arrived(known, rows, server_facts)))
    return found.unionByName(gap_findings(rows, server_facts.gaps)) if server_facts.gaps else found


def _batch(rows: DataFrame) -> Tables:
    return {tables.ROWS.name: rows}


def _roll(reader: Reader, server_facts: ServerFacts) -> Rolled:
    rows = reader.new_rows(tables.ROWS)
    history = reader.all_rows(tables.ROWS)
    earlier = reader.all_rows(tables.STATE)
    known = _with_history(new_messages(rows, earlier), history)
    known = judged(known, rows, history, server_facts, absence(rows, earlier, server_facts)).persist()
    found = with_message_ids(findings(known)).unionByName(gone_findings(known))
    new_gaps = _new_gaps(reader, server_facts)
    if new_gaps:
        found = found.unionByName(gap_findings(history, new_gaps))
    counts = ended_counts(known).unionByName(begun_counts(rows))
    parts = counts.selectExpr("*", "to_date(hour) as day").persist()
    days = sorted(row["day"] for row in parts.select("day").distinct().collect())
    hours = by_hour(_parts_of(days, reader.old_rows(tables.PARTS), parts))
    return Rolled(
        added={tables.PARTS.name: parts, tables.FINDINGS.name: found},
        days={tables.HOURS.name: (days, hours)},
        whole={tables.OPEN.name: open_messages(known), tables.STATE.name: kept_messages(known)},
        kept=(known, parts),
    )


def _parts_of(days: list[date], before: DataFrame, parts: DataFrame) -> DataFrame:
    """All counts of these days, from earlier roll-ups and from this one."""
    wanted = ", ".join(("day", *tables.PARTS.names))
    return select(
        f"""
        select {wanted} from {{before}} where {within(days)}
        union all
        select {wanted} from {{parts}}
        """,
        before=before,
        parts=parts,
    )


def _new_gaps(reader: Reader, server_facts: ServerFacts) -> tuple[Gap, ...]:
    """Gaps that no roll-up has reported yet."""
    if not server_facts.gaps:
        return ()
    told = {(row["partition_id"], row["first_missing"]) for row in reader.all_rows(tables.GAPS).collect()}
    return tuple(gap for gap in server_facts.gaps if (gap.writer, gap.first) not in told)


def _with_history(known: DataFrame, everything: DataFrame) -> DataFrame:
    """A message without a beginning may have ended before: then all its earlier rows are looked up."""
    found = select(
        f"""
        select partition_id, collect_list(sequence) as sequences
        from (
            select partition_id, sequence
            from {{known}}
            where begins = 0 and told = 0
            limit {_STRANGE_AT_ONCE}
        )
        group by partition_id
        """,
        known=known,
    ).collect()
    if not found:
        return known
    names = [(row["partition_id"], sequence) for row in found for sequence in row["sequences"]]
    strange = local_rows(known.sparkSession, names, "partition_id long, sequence long")
    history = everything.where(f"partition_id in ({listed(row['partition_id'] for row in found)})")
    others = select(
        """
        select /*+ broadcast(strange) */ known.*
        from {known} as known
        left anti join {strange} as strange
            on known.partition_id = strange.partition_id and known.sequence = strange.sequence
        """,
        known=known,
        strange=strange,
    )
    again = select(
        """
        select /*+ broadcast(strange) */ known.* except (newly_leased), false as newly_leased, true as looked_up
        from {known} as known
        left semi join {strange} as strange
            on known.partition_id = strange.partition_id and known.sequence = strange.sequence
        """,
        known=messages(history),
        strange=strange,
    )
    return without_forgotten(others.unionByName(again), history)


JOB = Job(
    name="ledger",
    sentence="Every acknowledged send ends in exactly one way or is still there; findings name the message that does not.",
    queue=LIFECYCLE_QUEUE,
    rows=LIFECYCLE,
    writer="partition_id",
    tables=(
        tables.HOURS,
        tables.FINDINGS,
        tables.OPEN,
        tables.GAPS,
        tables.CHECK,
        tables.PARTS,
        tables.ROWS,
        tables.STATE,
    ),
    batch=_batch,
    roll=_roll,
    wants_queues=True,
    state=tables.STATE.name,
    rolled_by_addition=frozenset({tables.PARTS.name, tables.FINDINGS.name}),
)
