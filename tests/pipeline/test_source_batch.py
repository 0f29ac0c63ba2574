"""`spark.read.format("penstock")`: columns, stretches, tables of rows, and what is said when it cannot be."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

import penstock
from penstock.client.produce.outgoing import AttributeValue
from penstock.columnar.arrow import arrow_stream
from penstock.columnar.usage import USAGE
from penstock.pipeline.errors import PipelineError, reason_of
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.source.data_source import PenstockDataSource
from tests.pipeline.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_message_is_a_row_with_everything_it_was_sent_with(spark: SparkSession, broker: Broker) -> None:
    queue = broker.new_log()
    before = datetime.now(UTC) - timedelta(seconds=1)
    queue.send_batch([b"plain", b"\x00\xff"])
    attributes: dict[str, AttributeValue] = {
        "text": "ä",
        "whole": 7,
        "real": 1.5,
        "truth": True,
        "bytes": b"\x01\x02",
    }
    full = penstock.OutgoingMessage(b"full", attributes=attributes, priority=7, group="grüne")
    queue.send_batch([full, penstock.OutgoingMessage(b"half", priority=1), b""])

    rows = broker.read(spark, queue.name).orderBy("sequence").collect()

    assert [bytes(row.body) for row in rows] == [b"plain", b"\x00\xff", b"full", b"half", b""]
    assert [row.sequence for row in rows] == [1, 2, 3, 4, 5]
    assert {row.partition for row in rows} == {0}
    assert [row.group for row in rows] == [None, None, "grüne", None, None]
    assert [row.priority for row in rows] == [0, 0, 7, 1, 0]
    texts = {"text": "ä", "whole": "7", "real": "1.5", "truth": "true", "bytes": "AQI="}
    assert [row.attributes for row in rows] == [{}, {}, texts, {}, {}]
    assert {row.receive_count for row in rows} == {None}
    times = local_rows(spark, [(before, datetime.now(UTC))], "first timestamp, last timestamp")
    assert broker.read(spark, queue.name).join(times).where("time between first and last").count() == 5


def test_a_stretch_by_offsets_and_by_times(spark: SparkSession, broker: Broker) -> None:
    queue = broker.new_log()
    queue.send_batch([f"{number}" for number in range(1, 101)])
    sent = next(message.sent_at for message in queue.log().messages(start=100))
    queue.send_batch(["101"])

    def numbers(**options: str) -> list[int]:
        found = broker.read(spark, queue.name, **options).select("sequence").collect()
        return sorted(row.sequence for row in found)

    assert numbers(startingOffsets=json.dumps({"0": 10}), endingOffsets=json.dumps({"0": 13})) == [10, 11, 12]
    assert numbers(startingOffsets="latest") == []
    later = (sent + timedelta(days=1)).isoformat()
    assert numbers(startingTime=later) == []
    assert numbers(endingTime="2020-01-01") == []
    assert numbers(startingTime="2020-01-01T00:00:00Z", endingTime=later) == list(range(1, 102))
    queue.log().commit_offsets("spark", {0: 99})
    assert numbers(startingOffsets="committed", group="spark") == [99, 100, 101]


def test_a_long_log_is_read_by_several_tasks_and_a_short_one_by_one(
    spark: SparkSession, broker: Broker
) -> None:
    queue = broker.new_log()
    with queue.producer(batch_messages=700) as producer:
        producer.send_many(b"%d" % number for number in range(60_000))

    long = broker.read(spark, queue.name)
    assert long.rdd.getNumPartitions() == 3
    found = long.selectExpr(
        "count(*) n",
        "count(distinct sequence) d",
        "sum(cast(cast(body as string) as bigint)) s",
        "max(sequence) m",
    ).first()
    assert found is not None
    assert tuple(found) == (60_000, 60_000, sum(range(60_000)), 60_000)
    assert broker.read(spark, queue.name, messagesPerTask="20000").rdd.getNumPartitions() == 3
    short = broker.read(spark, queue.name, startingOffsets=json.dumps({"0": 59_990}))
    assert short.rdd.getNumPartitions() == 1
    assert short.count() == 11


def test_rows_of_usage_come_out_of_their_messages(spark: SparkSession, broker: Broker) -> None:
    queue = broker.new_log()
    queue.send_batch([usage_rows(0, 3), usage_rows(3, 2)])

    found = broker.read(spark, queue.name, rows="usage").orderBy("number").collect()

    assert [(row.number, row.log_sequence, row.log_partition) for row in found] == [
        (0, 1, 0),
        (1, 1, 0),
        (2, 1, 0),
        (3, 2, 0),
        (4, 2, 0),
    ]
    assert found[4].queue == "arn:orders"
    assert found[4].latency_us == 40
    names = broker.read(spark, queue.name, rows="usage").schema.names
    assert names == [*USAGE.names, "log_partition", "log_sequence"]


def test_a_writer_that_knows_fewer_columns_leaves_the_others_empty() -> None:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from penstock.columnar.lifecycle import LIFECYCLE
    from penstock.pipeline.source.table_rows import rows_of_body, table_schema

    required = [column for column in LIFECYCLE.columns if not column.optional]
    values: dict[str, object] = {"string": "x", "timestamp": 1, "int8": 1, "int32": 1, "int64": 1}
    old = arrow_stream(LIFECYCLE._replace(columns=tuple(required)), [[values[one.kind]] for one in required])
    schema = to_arrow_schema(table_schema(LIFECYCLE), timezone="UTC")
    (batch,) = rows_of_body(pa.py_buffer(old), LIFECYCLE, schema, "q", 5)
    assert batch.schema.equals(schema)
    row = batch.to_pylist()[0]
    assert row["queue"] == "x"
    assert row["reason"] is None
    assert row["log_sequence"] == 5


def test_columns_are_those_of_a_log_and_nobody_else_names_them() -> None:
    source = PenstockDataSource({"queue": "any"})
    for given in (source.reader, source.streamReader):
        with pytest.raises(PipelineError, match=r"has the columns .*sequence.*omit \.schema\(…\)"):
            given(StructType().add("sequence", "long").add("body", "binary"))
        given(source.schema())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"queue": "nowhere"}, "there is no queue 'nowhere' at"),
        ({"queue": "plain-queue"}, "has no retained log"),
        ({"startingOffset": "latest"}, "did you mean startingOffsets?"),
        ({"maxMessagesPerTrigger": "5"}, "is for readStream, not for read"),
        ({"startingOffsets": '{"3": 1}'}, "names partition 3"),
        ({"startingOffsets": '{"0": 900}'}, "there is no message 900 in partition 0"),
        ({"endingOffsets": '{"0": 900}'}, "ends before 1"),
        ({"rows": "usage", "queue": "no-table"}, "holds no rows of usage: its body is no Arrow stream"),
        ({"endpoint": "127.0.0.1:1", "timeout": "0.2"}, "no Penstock server answers at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    spark: SparkSession, broker: Broker, options: dict[str, str], said: str
) -> None:
    broker.client.create_queue("plain-queue")
    broker.client.create_queue("no-table", consumption="log").send_batch([b"no table"])
    broker.client.create_queue("empty-log", consumption="log")
    given = {"endpoint": broker.endpoint, "queue": "empty-log"} | options
    with pytest.raises(Exception, match="PipelineError") as caught:
        spark.read.format("penstock").options(**given).load().collect()
    reason = reason_of(caught.value)
    assert reason is not None
    assert said in reason


def test_offsets_that_are_gone_fail_or_are_skipped_as_told(spark: SparkSession, broker: Broker) -> None:
    queue = broker.new_log()
    queue.send_batch(["1", "2", "3"])
    queue.purge()
    queue.send_batch(["4", "5"])
    start = json.dumps({"0": 2})
    with pytest.raises(Exception, match="no longer has 2 messages") as caught:
        broker.read(spark, queue.name, startingOffsets=start).count()
    assert "partition 0: 2 to 3" in (reason_of(caught.value) or "")
    assert "failOnDataLoss=false" in (reason_of(caught.value) or "")
    rest = broker.read(spark, queue.name, startingOffsets=start, failOnDataLoss="false")
    assert sorted(row.sequence for row in rest.collect()) == [4, 5]


def usage_rows(first: int, count: int) -> bytes:
    """The body of a message of the log of usage."""
    numbers = list(range(first, first + count))
    texts = {"front_end": "a", "queue": "arn:orders", "outcome": "ok", "action": "SendMessage"}
    whole = {"number": numbers, "latency_us": [10 * number for number in numbers]}
    return arrow_stream(
        USAGE,
        [
            whole.get(column.name, [1] * count)
            if column.kind != "string"
            else [texts.get(column.name, "")] * count
            for column in USAGE.columns
        ],
    )
