"""Settings for runs with few rows at a time: a run that follows on the server's machine, and a run that ends soon.

Their cost is Spark's planning, not the rows. So Java compiles the code once and quickly: the thorough compiler would use
more processor time in the first hour than all batches together. A run that follows also has the lowest priority.
"""

from __future__ import annotations

import os

from penstock.pipeline.session import JAVA_OPTIONS

NICENESS = 10
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LITTLE_BYTES = 16 * 2**20
"""Of a log: some 200,000 requests, which take about as long either way."""
_KEPT_PACKED = "spark.sql.inMemoryColumnarStorage.compressed"
"""What is cached for the second use of a batch, and dropped a moment later."""


def follow_settings(given: dict[str, str]) -> dict[str, str]:
    """Settings of Spark for a session in this process that only follows; existing settings stay."""
    ours = {JAVA_OPTIONS: _QUICK_JAVA, _KEPT_PACKED: "false"}
    return ours | given


def short_settings(given: dict[str, str], unread_bytes: int) -> dict[str, str]:
    """Settings of Spark for a run in this process that reads so much and ends. One that reads much is not short."""
    return {JAVA_OPTIONS: _QUICK_JAVA} | given if unread_bytes <= _LITTLE_BYTES else given


def give_way(niceness: int = NICENESS) -> None:
    """Gives a server on the same machine precedence, because a run that follows has time. An existing `nice` stays.

    Spark's processes inherit it. Threads of this kind also do not interrupt others when they wake up, which matters more
    to a server than its share of the processors, because it gets many requests in a millisecond.
    """
    if niceness <= 0 or os.getpriority(os.PRIO_PROCESS, 0) != 0:
        return
    os.nice(niceness)
    if hasattr(os, "sched_setscheduler"):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
