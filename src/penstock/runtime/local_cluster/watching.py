"""The foreground of a local cluster: reports processes that die, restarts them if that is wanted, and stops all of them, in
order, when it is interrupted.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

import msgspec

from penstock.cluster.local.restarts import Restarts
from penstock.runtime.local_cluster.cluster import LocalCluster, StartFailedError
from penstock.runtime.local_cluster.running import identified, is_alive
from penstock.runtime.processes.stop_flag import StopFlag

LOOK_SECONDS = 0.3
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""From the keyboard, from whoever started us, and when the terminal is closed."""


class Watcher:
    """Runs until it is interrupted, or until another command stopped everything."""

    def __init__(self, cluster: LocalCluster, tell: Callable[[str], None], *, supervise: bool) -> None:
        self._cluster = cluster
        self._tell = tell
        self._supervise = supervise
        self._interrupted = StopFlag()
        self._restarts = Restarts(supervise=supervise)

    def run(self) -> bool:
        """Watches; True where it was interrupted, so that everything is still to be stopped."""
        own = identified(os.getpid())
        self._cluster.directory.change(lambda state: msgspec.structs.replace(state, watcher=own))
        before = {number: signal.signal(number, self._interrupt) for number in INTERRUPTS}
        try:
            while not self._interrupted.wait(LOOK_SECONDS):
                if not self._cluster.state.running:
                    return False
                self.look()
            return True
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._cluster.directory.change(lambda state: msgspec.structs.replace(state, watcher=None))

    def look(self) -> None:
        """Checks all processes once."""
        state = self._cluster.state
        for name, process in state.running.items():
            planned = state.plan.find(name)
            if planned is None or is_alive(process):
                continue
            verdict = self._restarts.found_dead(name, process.process)
            if verdict.report:
                again = "" if self._supervise else f"; `penstock cluster start {name}` brings it back"
                self._tell(f"{name} has died{again}; its log is {self._cluster.log_of(planned)}")
            if verdict.start:
                self._bring_back(name)

    def _bring_back(self, name: str) -> None:
        try:
            self._cluster.start(name)
        except StartFailedError as error:
            self._tell(f"{error}; it is tried again")
        else:
            self._tell(f"{name} runs again")

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupted.set()
