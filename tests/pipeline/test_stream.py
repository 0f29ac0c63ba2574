"""`spark.readStream.format("penstock")`: micro-batches, limits, checkpoints, groups, and logs that let go."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.pipeline.errors import reason_of
from tests.pipeline.broker import Broker
from tests.pipeline.patience import patiently

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    import penstock

Batches = list[list[int]]


def collected(frame: DataFrame, checkpoint: Path) -> tuple[Batches, StreamingQuery]:
    """Reads what is there now, and ends: the numbers of each micro-batch."""
    batches: Batches = []

    def keep(batch: DataFrame, number: int) -> None:
        batches.append(sorted(row.sequence for row in batch.select("sequence").collect()))

    def run() -> StreamingQuery:
        query = (
            frame.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    query = patiently(run)
    return batches, query


@pytest.mark.beside
def test_a_query_goes_on_where_its_checkpoint_is_and_tells_its_group(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    queue = broker.new_log()
    queue.send_batch([f"{number}" for number in range(1, 6)])
    stream = broker.follow(spark, queue.name, group="reports")
    batches, query = collected(stream, tmp_path)
    assert batches == [[1, 2, 3, 4, 5]]
    progress = query.lastProgress
    assert progress is not None
    end = json.loads(progress["sources"][0]["endOffset"])
    assert end == {"queue": queue.describe().queue_id, "next": {"0": 6}, "missing": 0}
    assert queue.log().group_offsets("reports") == {0: 6}

    queue.send_batch(["6", "7"])
    batches, _ = collected(stream, tmp_path)
    assert batches == [[6, 7]]
    assert queue.log().group_offsets("reports") == {0: 8}
    begun = broker.follow(spark, queue.name, startingOffsets='{"0": 7}')
    assert collected(begun, tmp_path / "other")[0] == [[7]]


@pytest.mark.beside
def test_limits_cut_micro_batches(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    queue = broker.new_log()
    queue.send_batch([b"x" * 1_000] * 10)
    batches, _ = collected(broker.follow(spark, queue.name, maxMessagesPerTrigger="4"), tmp_path / "messages")
    assert batches == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    batches, _ = collected(broker.follow(spark, queue.name, maxBytesPerTrigger="5100"), tmp_path / "bytes")
    assert batches == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]


def test_what_arrives_while_a_query_runs_comes_with_its_next_micro_batches(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    queue = broker.new_log()

    def started() -> StreamingQuery:
        query = (broker.follow(spark, queue.name).writeStream.format("memory").queryName("follows")).start()
        query.processAllAvailable()
        return query

    query = patiently(started)
    try:
        for first in (1, 4):
            queue.send_batch([f"{number}" for number in range(first, first + 3)])
            query.processAllAvailable()
            found = spark.sql("select sequence from follows order by 1").collect()
            assert [row.sequence for row in found] == list(range(1, first + 3))
    finally:
        query.stop()


@pytest.mark.beside
def test_what_the_log_let_go_of_ends_the_query_or_is_reported(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    queue = broker.new_log()
    queue.send_batch(["1", "2", "3"])
    limited = {"maxMessagesPerTrigger": "1"}
    assert collected(broker.follow(spark, queue.name), tmp_path)[0] == [[1, 2, 3]]
    queue.send_batch(["4", "5"])
    queue.purge()
    queue.send_batch(["6", "7"])
    assert failure(lambda: collected(broker.follow(spark, queue.name, **limited), tmp_path)).startswith(
        f"the log of {queue.name!r} no longer has 2 messages that were to be read (partition 0: 4 to 5)"
    )
    batches, query = collected(broker.follow(spark, queue.name, failOnDataLoss="false", **limited), tmp_path)
    assert batches == [[6], [7]]
    progress = query.lastProgress
    assert progress is not None
    assert json.loads(progress["sources"][0]["endOffset"])["missing"] == 2


@pytest.mark.beside
def test_a_queue_that_was_made_again_is_not_taken_for_the_old_one(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    queue = broker.new_log()
    queue.send_batch(["1", "2"])
    assert collected(broker.follow(spark, queue.name), tmp_path)[0] == [[1, 2]]
    again = made_again(broker, queue.name)
    stream = broker.follow(spark, queue.name, group="reports")
    assert "was deleted and created again" in failure(lambda: collected(stream, tmp_path))
    assert again.log().group_offsets("reports") == {}, "how far the query came in the old one"
    batches, _ = collected(broker.follow(spark, queue.name, failOnDataLoss="false"), tmp_path)
    assert batches == [[1, 2, 3]]


@pytest.mark.beside
def test_a_micro_batch_that_was_not_finished_is_not_read_from_another_queue(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    queue = broker.new_log()
    queue.send_batch(["1", "2"])

    def trouble(batch: DataFrame, number: int) -> None:
        raise RuntimeError("no table to write to")

    def run() -> None:
        writer = broker.follow(spark, queue.name).writeStream.foreachBatch(trouble)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()

    with pytest.raises(Exception, match="no table to write to"):
        patiently(run)
    made_again(broker, queue.name)
    said = failure(lambda: collected(broker.follow(spark, queue.name), tmp_path))
    assert "was deleted and created again" in said
    batches, _ = collected(broker.follow(spark, queue.name, failOnDataLoss="false"), tmp_path)
    assert batches == [[], [1, 2, 3]]


def made_again(broker: Broker, name: str) -> penstock.BlockingQueue:
    """A queue with three messages, in place of the one of that name."""
    broker.client.delete_queue(name)
    queue = broker.client.create_queue(name, consumption="log")
    queue.send_batch(["1", "2", "3"])
    return queue


def failure(work: Callable[[], Any]) -> str:
    """What is said to the user."""
    with pytest.raises(Exception, match="PipelineError") as caught:
        work()
    reason = reason_of(caught.value)
    assert reason is not None
    return reason
