"""I12: the rows of the usage log are the calls that front ends answered, each once.

Every call has a unique client address, which is in its row. So each row belongs to one call, or to none.

A call that was answered has exactly one row, with the answer that its caller got. So has a call whose caller left while it
waited, with `cancelled`. These may be missing:

- the row of a call that was not answered because its front end was killed; it may also be there, because rows are written
  before answers
  leave, but never twice;
- rows that found no room in the spool: the front end counts them, the numbers of its rows have exactly as many gaps, and
  no more answered
  calls are missing than that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from penstock.columnar.reading import Row, rows_of
from penstock.columnar.usage import USAGE
from penstock.frontend.usage.record_usage import CANCELLED, SUCCEEDED
from penstock.model.batch import Batch
from penstock.model.records import Sent, decode_record
from penstock.simulation.cluster.metered_front_end import Life, MeteredFrontEnd
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.violation import Violation
from penstock.sqs.protocols.http import HttpResponse
from penstock.sqs.protocols.protocol import REQUEST_ID

NAME = "I12"
_SHOWN = 5


@dataclass(slots=True, eq=False)
class Call:
    """A request to a front end."""

    process: MeteredFrontEnd
    front_end: str
    """The process in the log."""
    address: str
    action: str
    queue: str
    answers: list[HttpResponse] = field(default_factory=list)
    """The answers that left the process."""
    is_cancelled: bool = False
    """Whether its caller left while it waited, and the process noticed."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return bool(self.answers) or self.is_cancelled or not self.process.lives


def usage_rows(log: Iterable[AppendedRecord]) -> Iterator[Row]:
    """The contents of the log."""
    for written in log:
        if isinstance(decode_record(written.head), Sent):
            for body in Batch(written.payload).bodies():
                yield from rows_of(USAGE, bytes(body))


def check(
    found: Iterable[Row], calls: Sequence[Call], lives: Sequence[Life], at_ms: int
) -> Iterator[Violation]:
    """Everything that is wrong."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for row in found:
        rows[row["address"]].append(row)
        numbers[row["front_end"]].append(row["number"])
    for sentence in (*_strange(rows, calls), *_missing(rows, calls, lives), *_miscounted(numbers, lives)):
        yield Violation(NAME, at_ms, sentence)


def _strange(rows: dict[str, list[Row]], calls: Sequence[Call]) -> Iterator[str]:
    """Rows that are too many, or say something else than the caller knows."""
    known = {call.address for call in calls}
    invented = sorted(address for address in rows if address not in known)
    if invented:
        yield f"nobody made the calls from {invented[:_SHOWN]} that are in the log of usage"
    twice = [call.address for call in calls if len(rows.get(call.address, ())) > 1]
    if twice:
        yield f"{len(twice)} calls are in the log of usage more than once, from {twice[:_SHOWN]}"
    for call in calls:
        for row in rows.get(call.address, ())[:1]:
            yield from _differences(call, row)


def _differences(call: Call, row: Row) -> Iterator[str]:
    said: Row = {"action": call.action, "queue": call.queue, "front_end": call.front_end}
    if call.answers:
        answer = call.answers[0]
        said |= {
            "request_id": dict(answer.headers)[REQUEST_ID],
            "status": answer.status,
            "bytes_out": len(answer.body),
        }
        if (row["outcome"] == SUCCEEDED) != (answer.status == 200):
            yield f"the row of {call.address} says {row['outcome']!r}, its caller was told {answer.status}"
    elif call.is_cancelled and row["outcome"] != CANCELLED:
        yield f"the row of {call.address} says {row['outcome']!r}, and its caller had gone"
    for column, value in said.items():
        if row[column] != value:
            yield f"the row of {call.address} has {column} {row[column]!r}, and it was {value!r}"


def _missing(rows: dict[str, list[Row]], calls: Sequence[Call], lives: Sequence[Life]) -> Iterator[str]:
    """Calls that were answered and have no row, more of them than their front end counted."""
    missing: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if (call.answers or call.is_cancelled) and call.address not in rows:
            missing[call.front_end].append(call)
    for life in lives:
        found = missing.pop(life.front_end, [])
        if len(found) > life.dropped:
            some = [f"{call.action} from {call.address}" for call in found[:_SHOWN]]
            yield (
                f"{len(found)} calls that {life.front_end} answered are not in the log of usage, and {life.dropped} found no "
                f"room: {some}"
            )


def _miscounted(numbers: dict[str, list[int]], lives: Sequence[Life]) -> Iterator[str]:
    """Gaps in the numbers of a process are what it counted as missing."""
    for life in lives:
        found = Counter(numbers.get(life.front_end, ()))
        again = [number for number, count in found.items() if count > 1]
        if again:
            yield f"numbers {again[:_SHOWN]} of {life.front_end} are in the log of usage more than once"
        if found and not 1 <= min(found) <= max(found) <= life.recorded:
            yield f"rows of {life.front_end} are numbered {min(found)} to {max(found)}, it recorded {life.recorded}"
        if len(found) != life.recorded - life.dropped:
            yield (
                f"{len(found)} rows of {life.front_end} are in the log of usage; it recorded {life.recorded}, and "
                f"{life.dropped} found no room"
            )
