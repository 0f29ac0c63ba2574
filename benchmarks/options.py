"""What a run can be told, and how much work each section does for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.config.serve import Durability

SECTIONS = ("machine", "throughput", "single", "end-to-end", "memory", "backlog", "fifo", "priority")
SQS_SECTIONS = ("sqs-throughput", "sqs-single", "sqs-long-poll", "sqs-idle")
LOG_SECTIONS = ("log",)
ORDER_SECTIONS = ("order",)
CLUSTER_SECTIONS = (
    "cluster-throughput",
    "cluster-log",
    "cluster-single",
    "cluster-failover",
    "cluster-queues",
)
SPARK_SECTIONS = ("spark-source", "spark-jobs", "spark-follow")
ALL_SECTIONS = SECTIONS + SQS_SECTIONS + LOG_SECTIONS + ORDER_SECTIONS + CLUSTER_SECTIONS + SPARK_SECTIONS
_SUFFIXES = {"k": 1_000, "m": 1_000_000}
_QUICK_BACKLOGS = (1_000, 100_000)
_FULL_BACKLOGS = (1_000, 100_000, 10_000_000)


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The options of a run."""

    quick: bool = False
    only: tuple[str, ...] = ()
    """Sections to measure; empty = all of the native protocol, or all of SQS."""
    sqs: bool = False
    """Measure the SQS server instead of the native protocol."""
    log: bool = False
    """Measure reading a retained log instead."""
    order: bool = False
    """Measure what each kind of order costs instead."""
    cluster: bool = False
    """Measure a cluster of three nodes on this machine instead."""
    spark: bool = False
    """Measure the data pipeline instead."""
    sizes: tuple[int, ...] = (100, 1024)
    backlogs: tuple[int, ...] = ()
    """Empty = those of the targets, less the largest when `quick`."""
    durability: Durability = "sync"
    data_directory: Path = field(default_factory=Path.cwd)
    """The run makes a directory of its own in here, and removes it."""
    profile: bool = False

    def check(self) -> None:
        """Raises `ValueError` with a sentence that says what cannot be."""
        if self.sqs + self.log + self.order + self.cluster + self.spark > 1:
            raise ValueError(
                "--sqs, --log, --order, --cluster and --spark are runs of their own: give one of them"
            )
        for name in self.only:
            if name not in ALL_SECTIONS:
                raise ValueError(f"there is no section {name!r}; there are {', '.join(ALL_SECTIONS)}")
        for size in self.sizes:
            if not 1 <= size <= 1024 * 1024:
                raise ValueError(f"a message size of {size} bytes; use 1 to 1048576")
        for backlog in self.backlogs:
            if not 1_000 <= backlog <= 1_000_000_000:
                raise ValueError(f"a backlog of {backlog} messages; use 1k to 1000m")
        if not self.sizes:
            raise ValueError("give at least one message size")
        if not self.data_directory.is_dir():
            raise ValueError(f"{self.data_directory} is not a directory")

    @property
    def sections(self) -> tuple[str, ...]:
        """Sections to measure, in their order."""
        if self.only:
            return tuple(name for name in ALL_SECTIONS if name in self.only)
        if self.log:
            return LOG_SECTIONS
        if self.order:
            return ORDER_SECTIONS
        if self.cluster:
            return CLUSTER_SECTIONS
        if self.spark:
            return SPARK_SECTIONS
        return SQS_SECTIONS if self.sqs else SECTIONS

    @property
    def backlog_sizes(self) -> tuple[int, ...]:
        """Backlogs to measure, smallest first."""
        return tuple(sorted(self.backlogs or (_QUICK_BACKLOGS if self.quick else _FULL_BACKLOGS)))

    @property
    def rounds(self) -> int:
        """How often each figure is measured."""
        return 3 if self.quick else 7

    @property
    def round_seconds(self) -> float:
        """About how long one round of a throughput figure takes."""
        return 0.5 if self.quick else 0.8


def parse_counts(text: str) -> tuple[int, ...]:
    """Numbers with commas between them, each with k or m behind it if that is shorter: `1k,100k,10m`."""
    counts = []
    for word in text.split(","):
        digits, suffix = word.strip().lower(), 1
        if digits and digits[-1] in _SUFFIXES:
            digits, suffix = digits[:-1], _SUFFIXES[digits[-1]]
        if not digits.isascii() or not digits.isdigit():
            raise ValueError(f"{word.strip()!r} is not a number; write 1024, 100k or 10m")
        counts.append(int(digits) * suffix)
    return tuple(counts)
