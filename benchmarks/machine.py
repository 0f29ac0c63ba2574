"""Facts about the machine a run was made on: without them its figures say nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec

from benchmarks.process_tree import tree_cpu_seconds


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Where figures come from."""

    cores: int
    processor: str
    memory_bytes: int
    kernel: str
    filesystem: str
    python: str
    load_before: float
    """The load average of the last minute, before the run: anything near `cores` spoils figures."""


def machine_facts(directory: Path) -> MachineFacts:
    """The facts, with the file system that holds `directory`."""
    return MachineFacts(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.system()} {platform.release()}",
        filesystem=filesystem_of(directory, Path("/proc/self/mountinfo").read_text()),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load_before=os.getloadavg()[0],
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def filesystem_of(directory: Path, mountinfo: str) -> str:
    """Type and device of the mount that holds the directory: the one with the longest path above it."""
    best, answer = -1, "unknown"
    resolved = directory.resolve()
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        mount_point = before.split(" ")[4].replace("\\040", " ")
        if resolved.is_relative_to(mount_point) and len(mount_point) >= best:
            best = len(mount_point)
            kind, device = after.split(" ")[:2]
            answer = f"{kind} on {device}"
    return answer


class Bystanders:
    """How much of the processors others used meanwhile: figures are worth the less the more it was."""

    def __init__(self) -> None:
        self._busy, self._total, self._own = self._read()

    def share(self) -> float:
        """The share of all processors, 0 to 1, that was neither idle nor ours, since this was made.

        Ours are this process and all that it has started, as long as somebody of them waits for those that end.
        """
        busy, total, own = self._read()
        passed = total - self._total
        if passed <= 0:
            return 0.0
        return max(0.0, (busy - self._busy - (own - self._own)) / passed)

    @staticmethod
    def _read() -> tuple[float, float, float]:
        """Seconds of all processors: busy, passed, and of ours."""
        user, nice, system, idle, waiting, interrupts, soft, *_ = map(
            int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        )
        # Interrupts are not charged to anybody, so they are nobody's fault.
        busy = user + nice + system
        ticks = os.sysconf("SC_CLK_TCK")
        return (
            busy / ticks,
            (busy + idle + waiting + interrupts + soft) / ticks,
            tree_cpu_seconds(os.getpid()),
        )
