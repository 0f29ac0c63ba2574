"""What a run that follows does differently on the machine of the server: little work a batch, and behind everybody else.

Its batches are small and many, and what they cost is Spark's planning rather than the rows. So Java compiles what it runs
once and quickly: the thorough compiler would use more processor time in the first hour than all batches together.
"""

from __future__ import annotations

import os

NICENESS = 10
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_KEPT_PACKED = "spark.sql.inMemoryColumnarStorage.compressed"
"""What is kept for the second look at a batch, and gone a moment later."""


def follow_settings(given: dict[str, str]) -> dict[str, str]:
    """Settings of Spark for a session in this process that only follows; what somebody has set stays as it is."""
    ours = {_JAVA_OPTIONS: _QUICK_JAVA, _KEPT_PACKED: "false"}
    return ours | given


def give_way(niceness: int = NICENESS) -> None:
    """A server on the same machine goes first: what follows it has time. Somebody's own `nice` stays as it is.

    Spark's processes inherit it. Threads of this kind also do not interrupt others when they wake up, which matters more to a server than its share of
    the processors: it is asked many times a millisecond.
    """
    if niceness <= 0 or os.getpriority(os.PRIO_PROCESS, 0) != 0:
        return
    os.nice(niceness)
    if hasattr(os, "sched_setscheduler"):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
