"""Journals that find no room for one append, for each append of a scenario in turn.

A step that is lost because the journal was busy in its middle shows only when the right append fails. So a scenario is run
again and again: in its k-th run the k-th append finds no room, until it has none left that could fail. Whatever append
failed, the scenario has to end as it always does.

    def scenario(journal: BusyJournal) -> None:
        node = NodeHarness()
        ...                     # what comes before is not disturbed
        journal.arm()
        ...                     # every append from here on fails in one of the runs
        assert node.drain(orders) == [b"a"]

    assert at_every_append(scenario) > 3
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from penstock.storage.errors import JournalBusyError, StorageError
from penstock.storage.journal import Journal

RUNS_AT_MOST = 2_000


class BusyJournal:
    """While it is entered, counts the appends of all journals of the process once it is armed, and refuses some of them."""

    def __init__(
        self, first: int, times: int = 1, error: Callable[[str], StorageError] = JournalBusyError
    ) -> None:
        """The append of number `first` is refused, and those after it, so many in all."""
        self.first = first
        self.times = times
        self._error = error
        self.appends = 0
        self.refused = 0
        self._armed = False
        self._real = Journal._put

    def arm(self) -> None:
        """From now on appends count."""
        self._armed = True

    def disarm(self) -> None:
        """From now on there is room."""
        self._armed = False

    def __enter__(self) -> BusyJournal:
        real = self._real

        def put(journal: Journal, *arguments: Any, **options: Any) -> int:
            self._count()
            return real(journal, *arguments, **options)

        Journal._put = put  # type: ignore[method-assign,assignment]  # all journals, also those that are opened later
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Journal._put = self._real  # type: ignore[method-assign]  # as it was
        if error is not None:
            error.add_note(f"append {self.first} found no room, and {self.times - 1} after it")

    def _count(self) -> None:
        if not self._armed:
            return
        self.appends += 1
        if self.first <= self.appends < self.first + self.times:
            self.refused += 1
            raise self._error(f"append {self.appends} finds no room: the test says so")


def at_every_append(
    scenario: Callable[[BusyJournal], None],
    *,
    times: int = 1,
    error: Callable[[str], StorageError] = JournalBusyError,
) -> int:
    """Runs the scenario with every one of its appends failing in turn; returns in how many runs one failed."""
    for number in range(1, RUNS_AT_MOST):
        with BusyJournal(number, times, error) as journal:
            scenario(journal)
        if not journal.refused:
            return number - 1
    raise AssertionError(f"the scenario never runs through: {RUNS_AT_MOST} appends of it failed, one by one")
