"""Whether a process failed to start because the disk is full: programs report this at length, and seldom at the end of their
logs.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

FULL_BYTES = 1024 * 1024
"""With less free space no process starts, and the reason may be missing in its log."""
_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_SIGNS = ("no space left on device", "disk quota exceeded", "disk is full", "enospc")


def why_full(place: Path, said: str) -> str | None:
    """The sentence for a process in `place` with the log `said`; None if there was another reason."""
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        return None
    lowered = said.lower()
    if free >= FULL_BYTES and not any(sign in lowered for sign in _SIGNS):
        return None
    return _sentence(place, free)


def why_not_written(error: OSError, place: Path) -> str | None:
    """The sentence for something that could not be written under `place`; None where it was something else."""
    return _sentence(place, shutil.disk_usage(place).free) if error.errno in _ERRORS else None


def _sentence(place: Path, free: int) -> str:
    return (
        f"the disk of {place} is full ({free / FULL_BYTES:.1f} MiB are left, and a cluster needs some hundred); free space "
        "there, or begin a cluster elsewhere with --data"
    )
