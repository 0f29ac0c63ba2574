"""A streaming query that copies a log and stands still in the middle of a micro-batch, to be killed there.

python killed_query.py ENDPOINT SOURCE SINK CHECKPOINT
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.pipeline.session import spark_session
from tests.pipeline.patience import patiently
from tests.pipeline.quick_spark import SESSION_OPTIONS

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_LET_THROUGH = 50


def main(endpoint: str, source: str, sink: str, checkpoint: str) -> None:
    def stands_still(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):  # of one row each, as it is set below
            if number == ROWS_LET_THROUGH:
                threading.Event().wait()
            yield batch

    spark = spark_session(
        "killed",
        "local[2]",
        SESSION_OPTIONS | {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
    )
    stream = spark.readStream.format("penstock").options(endpoint=endpoint, queue=source).load()
    halting = stream.select("body").mapInArrow(stands_still, "body binary")

    def run() -> None:
        writer = halting.writeStream.format("penstock")
        query = writer.options(endpoint=endpoint, queue=sink, checkpointLocation=checkpoint).start()
        query.awaitTermination()

    patiently(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
