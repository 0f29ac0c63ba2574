"""A process and all it has started, as the kernel sees them: memory, processor time, and holding them still."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_KIBIBYTE = 1024
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def peak_bytes(process: int) -> int:
    """The most memory that it has held so far; 0: it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    peak = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak[0]) * _KIBIBYTE if peak else 0


def cpu_seconds(process: int) -> float:
    """Its own and that of its children that have ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_A_SECOND


def tree_cpu_seconds(ancestor: int) -> float:
    """Of it, of everything it has started that still runs, and of what they have waited for."""
    return sum(cpu_seconds(process) for process in (ancestor, *descendants(ancestor)))


def program(process: int) -> str:
    """The name of what it runs, such as `java`; empty: it is gone."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def descendants(ancestor: int) -> list[int]:
    """Everything that it has started and that still runs."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found, new = set[int](), {ancestor}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return sorted(found)


def send_signal(ancestor: int, number: signal.Signals) -> None:
    """To it and to everything it has started."""
    for process in (ancestor, *descendants(ancestor)):
        with suppress(ProcessLookupError):
            os.kill(process, number)
