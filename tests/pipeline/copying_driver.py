"""`penstock` that copies a log first, and stands still in the middle of a micro-batch of that.

python -m tests.pipeline.copying_driver ENDPOINT SOURCE SINK CHECKPOINT pipeline run JOB …
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING

import penstock.cli.main
from penstock.pipeline.session import spark_session
from tests.pipeline.patience import patiently
from tests.pipeline.quick_spark import A_ROW_AT_A_TIME, SESSION_OPTIONS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ROWS_LET_THROUGH = 50


def main(endpoint: str, source: str, sink: str, checkpoint: str, *command: str) -> None:
    # A task that stands still keeps its core for itself.
    spark = spark_session("killed", "local[3]", SESSION_OPTIONS | A_ROW_AT_A_TIME)
    there = endpoint.removeprefix("penstock://")
    arguments = (spark, there, source, sink, checkpoint)
    threading.Thread(target=copy_or_end, args=arguments, daemon=True).start()
    sys.stdin.readline()  # the copy stands still now; the job has rows in larger pieces
    sys.argv[1:] = command
    penstock.cli.main.main()


def copy_or_end(spark: SparkSession, *where: str) -> None:
    """Who waits for the rows is not to wait for ever."""
    try:
        copy(spark, *where)
    finally:
        traceback.print_exc()
        os._exit(1)


def copy(spark: SparkSession, endpoint: str, source: str, sink: str, checkpoint: str) -> None:
    """A row at a time, until it stands still."""

    def stands_still(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):  # of one row each
            if number == ROWS_LET_THROUGH:
                threading.Event().wait()
            yield batch

    spark.createDataFrame(
        [], "nothing string"
    )  # by which this thread has a session, which sinks are looked up in

    def run() -> None:
        stream = spark.readStream.format("penstock").options(endpoint=endpoint, queue=source).load()
        halting = stream.select("body").mapInArrow(stands_still, "body binary")
        writer = halting.writeStream.format("penstock")
        query = writer.options(endpoint=endpoint, queue=sink, checkpointLocation=checkpoint).start()
        query.awaitTermination()

    patiently(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
