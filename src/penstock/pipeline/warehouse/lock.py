"""One run of a job at a time in a warehouse on a local disk: a lock that ends with its process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.warehouse import paths


class JobRunsError(PipelineError):
    """The job runs already."""


@contextmanager
def job_lock(local_root: str | None, job: str) -> Iterator[None]:
    """Held inside; raises `JobRunsError` if another run holds it. Without a local disk nothing is locked."""
    if local_root is None:
        yield
        return
    with _opened(local_root, job) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise JobRunsError(
                f"job {job} is already running and writes to {local_root} (process {holder}); that run continues"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _opened(local_root: str, job: str) -> IO[str]:
    """The first that a run writes: whoever named a place where it cannot is told here, before anything is changed."""
    directory = f"{local_root}/{paths.LOCKS}"
    try:
        os.makedirs(directory, exist_ok=True)
        return open(f"{directory}/{job}", "a+")
    except OSError as error:
        raise PipelineError(
            f"the warehouse {local_root} cannot be written: {error.strerror} ({error.filename}). Use a directory that this "
            "user may write to, or name another with --warehouse"
        ) from None
