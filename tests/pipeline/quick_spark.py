"""Settings of Spark for tests, which are short: what takes long in a process that ends soon is left out."""

from __future__ import annotations

from penstock.pipeline.class_archive import archive_options
from penstock.pipeline.java import find_java
from penstock.pipeline.session import JAVA_OPTIONS

QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=400m "
    f"{archive_options(find_java())}"
).strip()
"""A compiler that starts fast, a collector without threads of its own, and classes that are found at once."""

A_ROW_AT_A_TIME = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
"""Rows go from one stage to the next by themselves."""

INTERPRETED = {
    # Rows are few: to compile a plan costs more than to go through it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}

SESSION_OPTIONS = INTERPRETED | {
    "spark.driver.memory": "1500m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    # What sorts, groups or joins takes memory in pages, of 16 MB by itself, which are emptied first and collected soon.
    "spark.buffer.pageSize": "1m",
    JAVA_OPTIONS: f"{QUICK_JAVA} -Xms1200m -Xmn800m",
}
