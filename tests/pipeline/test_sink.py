"""`df.write.format("penstock")` and `writeStream`: every row once, whatever fails on the way."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from penstock.pipeline.errors import reason_of
from tests.pipeline.broker import Broker
from tests.pipeline.quick_spark import A_ROW_AT_A_TIME
from tests.pipeline.rows import LARGE_BODY

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def write(frame: DataFrame, broker: Broker, queue: str, **options: str) -> None:
    """Appends the rows to the queue."""
    frame.write.format("penstock").options(endpoint=broker.endpoint, queue=queue, **options).mode(
        "append"
    ).save()


def test_rows_become_messages_with_everything_they_say(spark: SparkSession, broker: Broker) -> None:
    queue = broker.new_log(consumption="both")
    columns = (
        "body string, `group` string, priority int, delay double, ttl interval day to second, "
        "attributes map<string,string>, deduplication_id string"
    )
    rows = [
        ("full", "g", 5, 0.0, timedelta(minutes=5), {"a": "1", "b": "ä"}, "own"),
        ("bare", None, None, None, None, None, None),
        ("again", None, None, None, None, None, "own"),
    ]
    write(spark.createDataFrame(rows, columns).coalesce(1), broker, queue.name)

    full, bare = queue.log().messages()
    assert (full.text(), full.group, full.priority, full.attributes) == ("full", "g", 5, {"a": "1", "b": "ä"})
    assert (full.delay_ms, full.ttl_ms, full.deduplication_id) == (0, 300_000, "own")
    assert (bare.text(), bare.group, bare.priority, bare.attributes) == ("bare", None, 0, {})
    assert (bare.delay_ms, bare.ttl_ms) == (None, None)


def test_a_write_that_is_named_is_done_once(spark: SparkSession, broker: Broker) -> None:
    queue = broker.new_log()
    frame = spark.range(50, numPartitions=2).selectExpr("cast(cast(id % 10 as string) as binary) body")
    write(frame, broker, queue.name, writeId="monday")
    write(frame, broker, queue.name, writeId="monday")
    assert Counter(broker.bodies(queue.name)) == {f"{number}": 5 for number in range(10)}
    write(frame, broker, queue.name)
    assert len(broker.bodies(queue.name)) == 100, "without a name it is another write"


@pytest.mark.alone
def test_a_task_that_fails_in_the_middle_and_is_run_again_in_another_order_adds_nothing_twice(
    spark: SparkSession, broker: Broker
) -> None:
    def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        rows = [row for batch in batches for row in batch.to_pylist()]
        again = context is not None and context.attemptNumber() > 0
        for row in reversed(rows) if again else rows[: len(rows) // 2]:
            yield pa.RecordBatch.from_pylist([row], schema=pa.schema([("body", pa.string())]))
        if not again:
            raise RuntimeError("the executor is lost")

    # Large rows and small batches, so that what Spark holds back between two stages is less than half of a task.
    frame = spark.range(40, numPartitions=2).selectExpr(f"rpad(id % 30, {LARGE_BODY}, ' ') body")
    failing = frame.mapInArrow(fails_once, "body string")
    queue, careless = broker.new_log(), broker.new_log()
    with a_row_at_a_time(spark):
        write(failing, broker, queue.name)
        write(failing, broker, careless.name, exactlyOnce="false")
    assert Counter(map(int, broker.bodies(queue.name))) == Counter(number % 30 for number in range(40))
    assert len(broker.bodies(careless.name)) > 40, "what failed had sent some of it"


@pytest.mark.parametrize(
    ("columns", "options", "mode", "said"),
    [
        ("1 body", {}, "append", "column body is int and must be binary or string"),
        ("'x' text, 3 size", {}, "append", "there is no column body, which is required"),
        ("'x' body, 'high' priority", {}, "append", "column priority is string and must be int, 0 to 9"),
        ("'x' body", {"queue": "nowhere"}, "append", "there is no queue 'nowhere'"),
        ("'x' body", {"startingOffsets": "latest"}, "append", "is for read and readStream, not for write"),
        ("'x' body", {}, "overwrite", "a queue cannot be overwritten"),
        ("cast(null as string) body", {}, "append", "column body is NULL"),
        ("'x' body, 77 priority", {}, "append", "priority 77 is not between 0 and 9"),
        ("'x' body, -1 delay", {}, "append", "a row has delay -1"),
        (
            "'x' body, str_to_map('a') attributes",
            {},
            "append",
            "attribute 'a' without a value",
        ),
    ],
)
def test_rows_that_cannot_be_written_are_refused_in_a_sentence(
    spark: SparkSession, broker: Broker, columns: str, options: dict[str, str], mode: str, said: str
) -> None:
    broker.client.create_queue("refuses", consumption="log")
    given = {"endpoint": broker.endpoint, "queue": "refuses"} | options
    frame = spark.range(1).selectExpr(*columns.split(", "))
    assert said in failure(lambda: frame.write.format("penstock").options(**given).mode(mode).save())
    assert broker.bodies("refuses") == []


@contextlib.contextmanager
def a_row_at_a_time(spark: SparkSession) -> Iterator[None]:
    """Until the block is over."""
    ((name, value),) = A_ROW_AT_A_TIME.items()
    before = spark.conf.get(name)
    assert before is not None
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def failure(work: Callable[[], Any]) -> str:
    """What is said to the user."""
    with pytest.raises(Exception, match="PipelineError") as caught:
        work()
    reason = reason_of(caught.value)
    assert reason is not None
    return reason
