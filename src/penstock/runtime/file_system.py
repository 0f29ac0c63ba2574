"""Which file system holds a directory, and what may be asked of it."""

from __future__ import annotations

import os
from pathlib import Path

HEED_THE_FLAG = frozenset({"ext4", "xfs"})
"""File systems that are known to sync a write made with RWF_DSYNC as `fdatasync` would have: its bytes, the file's
size and extents, the device's cache. Others may take the flag and not heed it, which no call would tell."""
_MOUNTS = Path("/proc/self/mountinfo")


def syncs_with_the_write(directory: Path) -> bool:
    """Whether one call may write to files of the directory and sync what it wrote."""
    if not hasattr(os, "RWF_DSYNC"):
        return False
    try:
        return kind_of(directory.stat().st_dev, _MOUNTS.read_text()) in HEED_THE_FLAG
    except OSError:
        return False


def kind_of(device: int, mounts: str) -> str | None:
    """The type of the file system with this device number, by the lines of mountinfo; None: it is not among them."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 2 and fields[2] == wanted and after:
            return after.split(" ")[0]
    return None
