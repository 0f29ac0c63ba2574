"""What the ledger does not know: changes whose rows never reached this job, and their possible contents.

Numbers show which rows are missing. A message may have begun, been leased or ended in them, so nothing is concluded from a
missing row. A gap is one finding, which names the possible messages; none of them is a finding itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame

from penstock.model.limits import BATCH_MESSAGES
from penstock.pipeline.jobs.ledger_messages import ENTERS, KEYS, PLACE
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import Gap
from penstock.pipeline.statement import select

DOUBTS = ("gap_first", "gap_last", "sure_from")
"""Of a message's partition: the first number that is missing, the first of its last gap, and the first message that
certainly began after that. All are null where nothing is missing."""


class Extent(NamedTuple):
    """All gaps of a partition, as far as they matter."""

    partition_id: int
    gap_first: int
    """Before this number everything is known."""
    gap_last: int
    """The first number of the last gap."""
    known_from: int
    """From this number on everything is known."""


def extents(gaps: Sequence[Gap]) -> list[Extent]:
    """One for each partition that has gaps."""
    found: dict[int, Extent] = {}
    for gap in gaps:
        partition_id = int(gap.writer)
        known = found.get(partition_id, Extent(partition_id, gap.first, gap.first, gap.last + 1))
        found[partition_id] = Extent(
            partition_id,
            min(known.gap_first, gap.first),
            max(known.gap_last, gap.first),
            max(known.known_from, gap.last + 1),
        )
    return [found[partition_id] for partition_id in sorted(found)]


def with_doubts(known: DataFrame, history: DataFrame, gaps: Sequence[Gap]) -> DataFrame:
    """Messages with the unknown changes of their partition; `history` are all rows. A message that may have begun in a gap
    counts as known: its missing origin is no finding.
    """
    if not gaps:  # as it should be: then nothing is looked up
        nothing = ", ".join(f"cast(null as bigint) as {name}" for name in DOUBTS)
        return select(f"select *, {nothing} from {{known}}", known=known)
    return select(
        f"""
        select /*+ broadcast(doubts) */ known.* except (told), {", ".join(DOUBTS)},
            case
                when begins = 0 and gap_last is not null and (sure_from is null or sequence < sure_from) then 1L
                else told
            end as told
        from {{known}} as known
        left join (
            select /*+ broadcast(sure) */ extents.partition_id, gap_first, gap_last, sure_from
            from {{extents}} as extents
            left join (
                select /*+ broadcast(extents) */ history.partition_id, min(first) as sure_from
                from {{history}} as history
                join {{extents}} as extents on history.partition_id = extents.partition_id
                where {ENTERS} and number >= known_from
                group by history.partition_id
            ) as sure on extents.partition_id = sure.partition_id
        ) as doubts on known.partition_id = doubts.partition_id
        """,
        known=known,
        history=history,
        extents=local_rows(known.sparkSession, extents(gaps), _EXTENT),
    )


def gap_findings(rows: DataFrame, gaps: Sequence[Gap]) -> DataFrame:
    """One for each gap: how much is missing, and of which messages it may have been; `rows` are all there are."""
    return select(
        f"""
        with around as (
            select /*+ broadcast(gaps) */ {_PLACE_OF_ROWS}, gap_start, gap_end,
                max(case when number < gap_start then time end) as time,
                coalesce(max(case when number < gap_start and {ENTERS} then first + count - 1 end), 0) as before,
                min(case when number > gap_end and {ENTERS} then first end) as after
            from {{rows}} as rows
            join {{gaps}} as gaps on rows.partition_id = gaps.partition_id
            group by {_PLACE_OF_ROWS}, gap_start, gap_end
        )
        select 'gap' as kind, {PLACE},
            cast(null as bigint) as sequence,
            cast(null as string) as message_id,
            gap_start as number,
            time,
            {_MISSING} || {_BEGUN} || {_ENDED} as explanation
        from around
        """,
        rows=rows,
        gaps=local_rows(rows.sparkSession, [(int(gap.writer), gap.first, gap.last) for gap in gaps], _GAP),
    )


_PLACE_OF_ROWS = ", ".join(f"rows.{name}" for name in KEYS[:-1])
_MISSING = """case
                when gap_start = gap_end
                    then 'change ' || gap_start || ' never reached this job, so its contents are unknown'
                else (gap_end - gap_start + 1) || ' changes, ' || gap_start || ' to ' || gap_end
                    || ', never reached this job, so their contents are unknown'
            end"""
"""The missing rows. With `before` and `after`, the last message that began before the gap and the first that began after it:"""
_BEGUN = f"""case
                when after is null or after - before - 1 > {BATCH_MESSAGES}L * (gap_end - gap_start + 1)
                    then '; messages from ' || (before + 1) || ' on may have begun there'
                when after - 1 = before + 1 then '; message ' || (before + 1) || ' began there'
                when after - 1 > before + 1
                    then '; messages ' || (before + 1) || ' to ' || (after - 1) || ' began there'
                else ''
            end"""
"""The messages that may have begun in it: not all between if there are more than rows can contain, because numbers may have
been skipped.
"""
_ENDED = """case
                when before > 0 then '; messages up to ' || before || ' may have been handed out or ended there'
                else ''
            end"""
"""The messages that may have ended in it."""

_EXTENT = "partition_id long, gap_first long, gap_last long, known_from long"
_GAP = "partition_id long, gap_start long, gap_end long"
