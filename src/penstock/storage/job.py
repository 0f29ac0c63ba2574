"""Work that a helper thread does for the owner: `run` there, `done` on the owner's thread.

A running job never uses the store: it works on its own data and keeps its results until the owner calls `done`. So no
further locking is needed.
"""

from __future__ import annotations

from collections.abc import Collection


class Job:
    """One piece of background work."""

    error: Exception | None = None
    pinned: Collection[int] = ()
    """Numbers of the files it reads, which stay as they are until it is done."""

    def run(self) -> None:
        """Does the work in any thread; never raises, what went wrong is in `error`."""
        try:
            self._work()
        except Exception as error:
            self.error = error

    def done(self) -> None:
        """Called once on the owner's thread after `run`, through `Store.job_done`."""

    def _work(self) -> None:
        raise NotImplementedError
