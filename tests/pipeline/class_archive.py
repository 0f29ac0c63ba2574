"""Spark's classes as Java reads them fastest: kept by a first run of these tests, and used by every Java of later runs.

A Java that starts Spark spends most of its time with finding and checking classes, in some 300 archives. It can write down
what it has loaded (`-XX:SharedArchiveFile`), and notices by itself where that is of another Java or of another Spark.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix) / f"spark-classes-{__version__}.jsa"
QUIET = "-Xlog:disable"
"""An archive that does not fit is no trouble, and what Java says of it would stand in the output of a driver."""


def used() -> str:
    """Options of a Java that uses what there is."""
    return f"{QUIET} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else QUIET


def recorded() -> str:
    """Further options of the Java that can say what it has loaded, while there is nothing to use."""
    return "" if ARCHIVE.exists() else "-XX:+RecordDynamicDumpInfo"


def keep(session: SparkSession) -> None:
    """Writes the archive, unless there is one. Where Java cannot, the next run is as slow as this one."""
    if ARCHIVE.exists():
        return
    beside = ARCHIVE.with_suffix(f".{os.getpid()}")
    with suppress(Exception):
        _told(session, "vmCds", "dynamic_dump", str(beside))
        beside.rename(ARCHIVE)
    beside.unlink(missing_ok=True)


def _told(session: SparkSession, command: str, *words: str) -> None:
    """What `jcmd` would tell that Java, which not every Java comes with."""
    jvm: Any = session._jvm
    gateway: Any = session.sparkContext._gateway

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    text, thing = jvm.java.lang.String, jvm.java.lang.Object
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    commands = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    # Its own class is hidden from us, so the method is looked up where everybody sees it.
    methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    (invoke,) = [method for method in methods if method.getName() == "invoke"]
    given, kinds = array(thing, array(text, *words)), array(text, "[Ljava.lang.String;")
    invoke.invoke(server, array(thing, commands, command, given, kinds))
