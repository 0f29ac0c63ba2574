"""What runs with few rows at a time do differently: one that follows on the machine of the server, and one that soon ends.

What they cost is Spark's planning rather than the rows. So Java compiles what it runs once and quickly: the thorough compiler
would use more processor time in the first hour than all batches together. One that follows also stays behind everybody else.
"""

from __future__ import annotations

import os

from penstock.pipeline.session import JAVA_OPTIONS

NICENESS = 10
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LITTLE_BYTES = 16 * 2**20
"""Of a log: some 200,000 requests, which take about as long either way."""
_KEPT_PACKED = "spark.sql.inMemoryColumnarStorage.compressed"
"""What is kept for the second look at a batch, and gone a moment later."""


def follow_settings(given: dict[str, str]) -> dict[str, str]:
    """Settings of Spark for a session in this process that only follows; what somebody has set stays as it is."""
    ours = {JAVA_OPTIONS: _QUICK_JAVA, _KEPT_PACKED: "false"}
    return ours | given


def short_settings(given: dict[str, str], unread_bytes: int) -> dict[str, str]:
    """Settings of Spark for a run in this process that reads so much and ends. One that reads much is not short."""
    return {JAVA_OPTIONS: _QUICK_JAVA} | given if unread_bytes <= _LITTLE_BYTES else given


def give_way(niceness: int = NICENESS) -> None:
    """A server on the same machine goes first: what follows it has time. Somebody's own `nice` stays as it is.

    Spark's processes inherit it. Threads of this kind also do not interrupt others when they wake up, which matters more to a
    server than its share of the processors: it is asked many times a millisecond.
    """
    if niceness <= 0 or os.getpriority(os.PRIO_PROCESS, 0) != 0:
        return
    os.nice(niceness)
    if hasattr(os, "sched_setscheduler"):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
