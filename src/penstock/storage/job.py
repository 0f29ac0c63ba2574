"""Work that a helper thread does for the owner: `run` there, `done` back on the owner's thread.

A job never reaches into the store while it runs: it works on what it was given and keeps its findings to
itself until the owner calls `done`. That is all the locking there is.
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
