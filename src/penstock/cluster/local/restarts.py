"""Which processes of a local cluster that have died are reported, and which are started again now. Starts nothing."""

from __future__ import annotations

from typing import NamedTuple

LOOKS_BETWEEN_STARTS = 3
"""A process that dies again at once is started again after so many looks, not at every one."""


class DeadProcess(NamedTuple):
    """What follows from a process that was found dead."""

    report: bool
    start: bool


class Restarts:
    """The processes that were found dead so far; `supervise`: they are to be started again."""

    def __init__(self, *, supervise: bool) -> None:
        self._supervise = supervise
        self._reported: set[tuple[str, int]] = set()
        self._pauses: dict[str, int] = {}

    def found_dead(self, name: str, process: int) -> DeadProcess:
        """One look found this process dead: it is reported once, and started at some looks."""
        report = (name, process) not in self._reported
        self._reported.add((name, process))
        return DeadProcess(report, self._supervise and self._may_start(name))

    def _may_start(self, name: str) -> bool:
        if self._pauses.get(name, 0) > 0:
            self._pauses[name] -= 1
            return False
        self._pauses[name] = LOOKS_BETWEEN_STARTS
        return True
