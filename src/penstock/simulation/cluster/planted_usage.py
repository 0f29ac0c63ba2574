"""Bugs to plant in the record of usage; `planted_bugs` names them too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.frontend.telling import tell
from penstock.frontend.usage.internal_log import InternalLog
from penstock.frontend.usage.record_usage import RecordedAnswers
from penstock.model.batch import Buffer
from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.planted_patches import Patch
from penstock.steps.step import Steps
from penstock.usage import collector
from penstock.usage.batch import UsageBatch
from penstock.usage.collector import UsageCollector
from penstock.usage.spool import Spool


def _records_late() -> Sequence[Patch]:
    """Answers leave first, and their rows are written then."""

    def let_go(self: RecordedAnswers) -> None:
        rows, self._rows = self._rows, []
        answers, self._answers = self._answers, []
        for reply, response in answers:
            tell(reply, response)
        if rows:
            self._usage.record_all(rows)

    return [(RecordedAnswers, "_let_go", let_go)]


def _renumbers() -> Sequence[Patch]:
    """A batch that is handed on again has another number."""

    def batch_of(spool: Spool, front_end: str, blocks: list[Any]) -> UsageBatch:
        spool.through = 0
        return real(spool, front_end, blocks)

    real = collector._batch_of
    return [(collector, "_batch_of", batch_of)]


def _forgets_numbers() -> Sequence[Patch]:
    """The spool does not say which batch is on its way, so that the next process begins with the first number."""

    def begin_batch(self: Spool, batch: int, through: int) -> None:
        self.batch, self.through = batch, through

    return [(Spool, "begin_batch", begin_batch)]


def _forgets_the_dead() -> Sequence[Patch]:
    """What a process that was killed has left is thrown away."""

    def next_of(spool: Spool) -> None:
        return None

    return [(collector, "_next_of", next_of)]


def _renames_the_dead() -> Sequence[Patch]:
    """What a process that was killed has left is handed on under another producer."""

    def adopted(self: UsageCollector) -> list[Spool]:
        found = real(self)
        for spool in found:
            spool.producer = self._producer + 2
        return found

    real = UsageCollector._adopted
    return [(UsageCollector, "_adopted", adopted)]


def _takes_refusals_for_answers() -> Sequence[Patch]:
    """What the log did not take counts as stored."""

    def store(self: InternalLog, batch: Buffer, producer: int = 0, number: int = 0) -> Steps[bool]:
        yield from real(self, batch, producer, number)
        return True

    real = InternalLog.store
    return [(InternalLog, "store", store)]


def _counts_no_drops() -> Sequence[Patch]:
    """Rows that find no room are not counted."""

    def drop(self: UsageCollector, count: int) -> None:
        return None

    return [(UsageCollector, "_drop", drop)]


def _is_metered(scenario: ClusterScenario) -> bool:
    return scenario.is_metered


def _bug(sentence: str, patches: Callable[[], Sequence[Patch]]) -> ClusterBug:
    return ClusterBug(("I12",), sentence, patches, _is_metered)


USAGE_BUGS: dict[str, ClusterBug] = {
    "usage-is-recorded-late": _bug("a call is answered before its row is written", _records_late),
    "usage-batches-are-renumbered": _bug(
        "usage that is handed on again has another number, and is stored twice", _renumbers
    ),
    "usage-numbers-are-forgotten": _bug(
        "usage of a killed process is handed on under numbers that it had used for other rows",
        _forgets_numbers,
    ),
    "usage-of-the-dead-is-forgotten": _bug(
        "usage that a killed process has left is thrown away", _forgets_the_dead
    ),
    "usage-of-the-dead-is-renamed": _bug(
        "usage that a killed process has left is handed on under another producer, and is stored twice",
        _renames_the_dead,
    ),
    "usage-refusals-are-answers": _bug(
        "usage that the log did not take counts as stored", _takes_refusals_for_answers
    ),
    "usage-drops-are-not-counted": _bug("rows that find no room are not counted", _counts_no_drops),
}
