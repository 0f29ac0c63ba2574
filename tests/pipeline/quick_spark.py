"""Settings of Spark for tests, which are short: what takes long in a process that ends soon is left out."""

from __future__ import annotations

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""A compiler that starts fast, and a collector without threads of its own."""

INTERPRETED = {
    # Rows are few: to compile a plan costs more than to go through it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}

SESSION_OPTIONS = INTERPRETED | {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": f"{QUICK_JAVA} -Xms640m -Xmn320m",
}
