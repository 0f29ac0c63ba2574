"""The resources of the process: CPU seconds and resident memory."""

from __future__ import annotations

import os
import resource

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_usage() -> tuple[float, int]:
    """CPU seconds of all threads so far, and resident bytes now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    try:
        with open("/proc/self/statm", "rb") as statistics:
            resident_bytes = int(statistics.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        resident_bytes = usage.ru_maxrss * 1024  # the peak is the best there is without /proc
    return usage.ru_utime + usage.ru_stime, resident_bytes
